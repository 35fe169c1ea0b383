// The throws and catches of the public headers.
#include "sluice/detail/exceptions.hpp"

#include <new>

namespace sluice::detail {

void raise(const std::system_error& error) { throw std::system_error(error); }
void raise(const std::invalid_argument& error) { throw std::invalid_argument(error); }

void call_within_memory(void (*function)(const void* context), const void* context,
                        std::error_code& error) noexcept try {
  function(context);
} catch (const std::bad_alloc&) {
  error = std::make_error_code(std::errc::not_enough_memory);
}

}  // namespace sluice::detail
