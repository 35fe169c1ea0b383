// Coroutines of a World, and how they sleep. Threading: the thread of the World.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "sluice/asio/sleep.hpp"
#include "sluice/sim/world.hpp"

namespace sluice::sim::scenario {

template <class T = void>
using Task = boost::asio::awaitable<T, World::Executor>;
inline constexpr boost::asio::use_awaitable_t<World::Executor> use_task;

}  // namespace sluice::sim::scenario
