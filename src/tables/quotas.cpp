// Tables of quotas.
#include "src/tables/limit_table.hpp"

namespace sluice {

template class LimitList<Quota>;
template std::vector<std::string> difference(const LimitList<Quota>&, const LimitList<Quota>&);
template class LimitTable<Quota>;
template class detail::LimitOf<Quota>;

}  // namespace sluice
