// Store calls as Boost.Asio operations: plans, and every call of every limiter; docs/asio.md has
// the table. Header only; needs Boost 1.81.
#pragma once

#include "sluice/asio/decide.hpp"
#include "sluice/asio/verbs.hpp"
