// Tables of numbers.
#include "src/tables/limit_table.hpp"

namespace sluice {

template class LimitList<Word>;
template std::vector<std::string> difference(const LimitList<Word>&, const LimitList<Word>&);
template class LimitTable<Word>;
template class detail::LimitOf<Word>;

}  // namespace sluice
