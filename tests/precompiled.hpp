// What nearly every test includes, compiled once: Catch2 and the standard library, but nothing of
// Sluice, so that a change of a header rebuilds what includes it and no more.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
