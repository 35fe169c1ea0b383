#include "sluice/detail/life.hpp"

namespace sluice::detail {

Life::Life() : over_(std::make_shared<std::atomic<bool>>(false)) {}

}  // namespace sluice::detail
