// getaddrinfo() of this program, which hangs on demand. Threading: any.
#pragma once

#include <chrono>

namespace sluice::chaos {

/// Look-ups that begin from now on take so much longer; zero ends that.
void delay_look_ups(std::chrono::microseconds delay) noexcept;

}  // namespace sluice::chaos
