// ScriptJoiner: makes the scripts from the files of lua/. Lines that begin with "--@" are
// instructions:
//
//   piece NAME                     begins a section that others use
//   operation NAME(STATE | A, B)   begins the section of an operation, whose lines are the body of
//                                  its function decide(). STATE is head[n], the first n words of a
//                                  variable state, or the names of the two words of a fixed one;
//                                  the arguments follow
//   fast NAME                      begins an operation's fast path: the body of its fast()
//   fast_plan NAME                 begins the fast path of plans of this operation alone
//
//   use NAME                       is replaced by the piece
//   if FLAG / else / end           as the driver is joined: script (else a library), fixed or
//                                  variable, fast, fast_plan, output, table, record
//   repeat k = 1..n / end          the lines with $k as 1, then 2, up to n
//   repeat k = windows 1..n / end  only for the numbers of windows of the steps to join
//
// In drivers only, decide, fast and fast_plan are replaced by the code of the current operation,
// and operations by that of all. Within a line, $n[text] is the text with $k as 1, then 2, up to n;
// it ends at the first bracket. Comments are removed: no string may contain " -- ".
//
// Constants of script_constants.hpp are written by name: word_limit, Errc.x, IdempotencyRecord.x,
// Rule.x of the file's own rule, and Operation.x of the current operation: id, kind,
// argument_count, output, head.
#pragma once

#include <bitset>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/extend/operation.hpp"

namespace sluice::redis_detail {

struct LuaFile {
  std::string_view name;  ///< "rules/leases.lua"
  std::string_view text;
};

/// Immutable after construction, so that any thread may use it.
class ScriptJoiner {
 public:
  /// Throws std::logic_error, with the file, for an invalid instruction, or an operation that
  /// `operations` does not have or describes differently. The texts of the files outlive this.
  ScriptJoiner(std::span<const LuaFile> files, std::span<const Operation* const> operations);

  /// True if the files have this operation.
  [[nodiscard]] bool has(const Operation& operation) const noexcept;

  /// The numbers of windows of the steps: bit n for n windows, from 1 on.
  using WindowCounts = std::bitset<max_table_words / 2 + 1>;

  /// The script of one step. This and the following throw std::logic_error if joining fails.
  /// REQUIRES: has(operation).
  [[nodiscard]] std::string step(const Operation& operation, WindowCounts windows) const;
  /// The script of a plan with steps of these operations, each listed once.
  [[nodiscard]] std::string plan(std::span<const Operation* const> operations, bool has_record,
                                 WindowCounts windows) const;
  /// All operations as functions, named `prefix`_<operation>, and plans of any of them as
  /// `prefix`_plan, of fixed states as `prefix`_fixed_plan, with a record as
  /// `prefix`_idempotent_plan.
  [[nodiscard]] std::string library(std::string_view prefix) const;

  /// "token_bucket_acquire" of "token_bucket.acquire".
  [[nodiscard]] static std::string stem_of(const Operation& operation);

 private:
  struct Section {
    std::string_view file;
    std::string_view rule;  ///< the file's name without folder and extension
    std::vector<std::string_view> lines;
    std::vector<std::string_view>
        state;  ///< of an operation: the names of its two words, if it is fixed
    std::vector<std::string_view> arguments;  ///< of an operation
    int head = 0;  ///< of an operation: words of its head, 0 if it is fixed
  };
  using Sections = std::map<std::string, Section, std::less<>>;
  /// The state of joining.
  struct Scope;

  void read(const LuaFile& file);
  Section& begin_section(const LuaFile& file, std::string_view instruction);
  void check(const Operation& operation) const;
  [[nodiscard]] Scope scope_of(const Operation& operation, bool is_script) const;

  void join(const Section& section, Scope& scope, std::string& out) const;
  void join_lines(const Section& section, std::span<const std::string_view> lines, Scope& scope,
                  std::string& out) const;
  std::size_t join_block(const Section& section, std::span<const std::string_view> lines,
                         Scope& scope, std::string& out) const;
  void join_repeat(const Section& section, std::string_view opening,
                   std::span<const std::string_view> lines, Scope& scope, std::string& out) const;
  void join_body(const Section& section, Scope& scope, std::string& out) const;
  void join_piece(const Section& user, std::string_view name, Scope& scope, std::string& out) const;
  void join_instruction(const Section& section, std::string_view instruction, Scope& scope,
                        std::string& out) const;
  void join_decide(const Section& section, Scope& scope, std::string& out) const;
  void join_fast(const Section& section, Scope& scope, std::string& out) const;
  void join_functions(const Operation& operation, Scope& scope, std::string& out) const;
  [[nodiscard]] std::string description_of(const Operation& operation) const;
  void join_fast_plans(Scope& scope, std::string& out) const;
  void join_operations(Scope& scope, std::string& out) const;
  [[nodiscard]] std::string with_variables(const Section& section, std::string_view line,
                                           Scope& scope) const;
  void join_code(const Section& section, std::string_view line, Scope& scope,
                 std::string& out) const;
  [[nodiscard]] Word constant(const Section& section, std::string_view name,
                              const Scope& scope) const;

  std::vector<const Operation*> operations_;  // the operations in the files
  Sections pieces_;
  Sections decides_;
  Sections fasts_;
  Sections fast_plans_;
};

}  // namespace sluice::redis_detail
