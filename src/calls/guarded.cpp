#include "sluice/calls/guarded.hpp"

namespace sluice::detail {

void raise_not_granted(const std::string& name, const Decision& decision) {
  throw NotGranted("\"" + name + "\" did not grant the call in time", decision);
}

}  // namespace sluice::detail
