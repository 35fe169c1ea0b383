// The list of planted bugs: a line for each algorithm.
#include "tests/twin/mutants.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <span>

#include "tests/twin/mutants/drivers.hpp"
#include "tests/twin/mutants/fixed_window.hpp"
#include "tests/twin/mutants/gate.hpp"
#include "tests/twin/mutants/leases.hpp"
#include "tests/twin/mutants/shared_sliding_window.hpp"
#include "tests/twin/mutants/shared_token_bucket.hpp"
#include "tests/twin/mutants/sliding_window.hpp"
#include "tests/twin/mutants/sliding_window_counter.hpp"
#include "tests/twin/mutants/slot_lock.hpp"
#include "tests/twin/mutants/token_bucket.hpp"
#include "tests/twin/mutants/token_bucket_reserve.hpp"
#include "tests/twin/mutants/utilization.hpp"
#include "tests/twin/mutants/wait_line.hpp"

namespace sluice::test {
namespace {

std::vector<Mutant> all_in(bool scripts) {
  const std::initializer_list<std::span<const Mutant>> tables{
      drivers::mutants,
      fixed_window::mutants,
      gate::mutants,
      leases::mutants,
      shared_token_bucket::mutants,
      shared_sliding_window::mutants,
      sliding_window_counter::mutants,
      sliding_window::mutants,
      slot_lock::mutants,
      token_bucket::mutants,
      token_bucket_reserve::mutants,
      utilization::mutants,
      wait_line::mutants,
  };
  std::vector<Mutant> found;
  for (const auto& table : tables) {
    std::ranges::copy_if(table, std::back_inserter(found), [scripts](const Mutant& mutant) {
      return !mutant.file.starts_with("src/") == scripts;
    });
  }
  return found;
}

}  // namespace

std::vector<Mutant> script_mutants() { return all_in(true); }
std::vector<Mutant> kernel_mutants() { return all_in(false); }

}  // namespace sluice::test
