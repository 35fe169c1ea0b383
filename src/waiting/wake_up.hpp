// Wake-ups of processes that wait in one line.
#pragma once

#include <string>
#include <string_view>

#include "sluice/detail/store_ref.hpp"
#include "sluice/key.hpp"

namespace sluice::detail {

/// Why a waiter is woken.
enum class Woken : bool {
  by_turn,     ///< it is this process's turn, as another one says
  by_release,  ///< something came back: the limiter may grant before its hint
};

/// A process of the wait line that is woken next; 0: none.
struct NextProcess {
  Word client;
  Woken by;
};

/// The name of the wait line for `key`, under the same tag.
[[nodiscard]] std::string wait_line_name(const Key& key);
/// The name of the key under which a process of the wait line is woken.
[[nodiscard]] std::string wake_up_name(std::string_view line_name, Word client, Woken by);
/// Wakes a process of the wait line, if it listens.
void wake_client(const StoreRef& store, std::string_view tag, std::string_view line_name,
                 Word client, Woken by) noexcept;

}  // namespace sluice::detail
