// --table in a build without the component config: there is none. See table.hpp.
#include <stdexcept>

#include "tool/table.hpp"

namespace sluice::tool {

bool has_tables() noexcept { return false; }

decltype(Given::fill) read_table(const std::string& /*file_and_name*/) {
  throw std::invalid_argument("this sluice was built without tables (SLUICE_CONFIG=OFF)");
}

}  // namespace sluice::tool
