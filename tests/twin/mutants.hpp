// The bugs that the mutation run plants, each a textual replacement that must match exactly once.
// Each algorithm has its own header in mutants/, and a line in mutants.cpp. A mutant that means the
// same as the original has no place there: the run would fail, because nothing can catch it.
// Threading: constants.
#pragma once

#include <string_view>
#include <vector>

namespace sluice::test {

struct Mutant {
  std::string_view name;
  std::string_view
      file;  // a section of a Lua file, "piece leases_base", or a kernel: src/rules/...
  std::string_view from;
  std::string_view to;
};

[[nodiscard]] std::vector<Mutant> script_mutants();
[[nodiscard]] std::vector<Mutant> kernel_mutants();

}  // namespace sluice::test
