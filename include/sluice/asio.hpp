// Everything for Boost.Asio: plans, every call of every limiter, waits, calls with all that they
// stand under; docs/asio.md has the tables. Header only; needs Boost 1.81.
#pragma once

#include "sluice/asio/acquire.hpp"
#include "sluice/asio/calls.hpp"
#include "sluice/asio/decide.hpp"
#include "sluice/asio/sleep.hpp"
#include "sluice/asio/verbs.hpp"
