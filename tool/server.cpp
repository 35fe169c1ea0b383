// See server.hpp.
#include "tool/server.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <charconv>
#include <exception>

#include "backends/redis/protocol/hash_slot.hpp"
#include "backends/redis/protocol/protocol.hpp"
#include "backends/redis/topology/control.hpp"
#include "cli/text.hpp"

namespace sluice::tool {
namespace {

namespace asio = boost::asio;
using namespace redis_detail;

void append(std::string& out, const Words& words) {
  out += '*' + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    out += '$' + std::to_string(word.size()) + "\r\n";
    out.append(word).append("\r\n");
  }
}

Reply converted(const redisReply& reply) {
  using Kind = Reply::Kind;
  Reply result;
  result.integer = reply.integer;
  if (reply.str != nullptr) result.text.assign(reply.str, reply.len);
  result.kind = reply.type == REDIS_REPLY_NIL       ? Kind::null
                : reply.type == REDIS_REPLY_STATUS  ? Kind::status
                : reply.type == REDIS_REPLY_ERROR   ? Kind::error
                : reply.type == REDIS_REPLY_INTEGER ? Kind::integer
                : reply.type == REDIS_REPLY_STRING  ? Kind::string
                                                    : Kind::array;
  for (std::size_t i = 0; result.kind == Kind::array && i < reply.elements; ++i) {
    result.elements.push_back(converted(*reply.element[i]));
  }
  return result;
}

/// Takes whole replies out of the reader. False if the bytes are no protocol.
bool take(redisReader* reader, std::vector<Reply>& replies) {
  for (;;) {
    void* raw = nullptr;
    if (redisReaderGetReply(reader, &raw) != REDIS_OK) return false;
    if (raw == nullptr) return true;
    const std::unique_ptr<redisReply, void (*)(void*)> reply(static_cast<redisReply*>(raw),
                                                             freeReplyObject);
    replies.push_back(converted(*reply));
  }
}

}  // namespace

Server::Server(RedisOptions options)
    : options_(std::move(options)),
      names_(io_, look_up_on_threads({})),
      journal_(options_),
      connection_(io_, options_, names_, &journal_) {
  bool is_ready = false;
  run([&]() -> asio::awaitable<void> { is_ready = co_await connection_.connect(); });
  if (is_ready) return;
  const auto failure = journal_.last_failure();
  throw Unreachable(failure ? failure->text() : "no connection");
}

Server::~Server() { connection_.close(); }

template <class Task>
void Server::run(Task task) {
  const auto work = asio::make_work_guard(io_);
  bool is_over = false;
  std::exception_ptr thrown;
  io_.restart();
  asio::co_spawn(io_, std::move(task), [&](std::exception_ptr error) {
    thrown = error;
    is_over = true;
  });
  while (!is_over) io_.run_one();
  if (thrown) std::rethrow_exception(thrown);
}

asio::awaitable<void> Server::exchange(std::string commands, std::size_t count,
                                       std::vector<Reply>& replies) {
  const std::unique_ptr<redisReader, void (*)(redisReader*)> reader(redisReaderCreate(),
                                                                    redisReaderFree);
  if (!reader) throw std::bad_alloc();
  Transport& transport = connection_.transport();
  boost::system::error_code error;
  co_await transport.write_all(commands, error);
  while (replies.size() < count) {
    if (!error) error = co_await transport.arrive();
    const std::string_view bytes = error ? std::string_view() : transport.take(error);
    if (error) throw Unreachable(address() + ": " + error.message());
    redisReaderFeed(reader.get(), bytes.data(), bytes.size());
    if (!take(reader.get(), replies)) throw Unreachable(address() + ": no reply of a Redis server");
  }
}

std::vector<Reply> Server::pipeline(std::span<const Words> commands) {
  std::string text;
  for (const Words& each : commands) append(text, each);
  std::vector<Reply> replies;
  SystemClock clock;
  const Time begin = clock.now();
  asio::steady_timer timer(io_);
  is_late_ = false;
  timer.expires_after(longest_answer);
  timer.async_wait([this](boost::system::error_code error) {
    if (error) return;
    is_late_ = true;
    connection_.transport().abort();
  });
  try {
    run([&] { return exchange(std::move(text), commands.size(), replies); });
  } catch (const Unreachable&) {
    if (!is_late_) throw;
    throw Unreachable(address() + ": " + no_answer_within(longest_answer));
  }
  took_ = clock.now() - begin;
  return replies;
}

Reply Server::operator()(std::initializer_list<std::string_view> words) {
  const Words command(words);
  return std::move(pipeline({&command, 1}).front());
}

Word Server::now() { return time_of((*this)({"TIME"})); }

Word Server::time_of(const Reply& reply) const {
  require_permitted("TIME", reply);
  const Word now = time_in(reply);
  if (now == 0) throw Unreachable(address() + ": the server does not tell its TIME");
  return now;
}

void Server::require_permitted(std::string_view command, const Reply& reply) const {
  if (!is_not_permitted(reply)) return;
  throw NotPermitted(address() + ": " + std::string(command) + ": " + printable(reply.text, 200));
}

bool is_not_permitted(const Reply& reply) noexcept {
  return reply.kind == Reply::Kind::error && reply.text.starts_with("NOPERM");
}

Word time_in(const Reply& reply) noexcept {
  Word parts[2]{};
  for (std::size_t i = 0; i < 2 && reply.elements.size() == 2; ++i) {
    const std::string& text = reply.elements[i].text;
    std::from_chars(text.data(), text.data() + text.size(), parts[i]);
  }
  return parts[0] * 1'000'000 + parts[1];
}

Fleet::Fleet(const RedisOptions& options) {
  if (options.sentinel) {
    add_master(options);
  } else if (!options.cluster.empty()) {
    add_nodes(options);
  } else {
    servers_.push_back(std::make_unique<Server>(options));
  }
}

void Fleet::add_master(const RedisOptions& options) {
  std::string why = "there is no Sentinel";
  for (const RedisAddress& each : options.sentinel->sentinels) {
    RedisOptions login = sentinel_login(options);
    login.host = each.host;
    login.port = each.port;
    try {
      Server sentinel(std::move(login));
      const NamedMaster named =
          read_master(sentinel({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", options.sentinel->master}));
      if (named.address) {
        RedisOptions master = options;
        master.host = named.address->host;
        master.port = named.address->port;
        servers_.push_back(std::make_unique<Server>(std::move(master)));
        return;
      }
      why = named.error;
    } catch (const Unreachable& error) {
      why = error.what();
    }
  }
  throw Unreachable("no Sentinel names a master that serves: " + why);
}

void Fleet::add_nodes(const RedisOptions& options) {
  std::string why;
  ClusterMap map;
  for (const RedisAddress& each : options.cluster) {
    RedisOptions node = options;
    node.host = each.host;
    node.port = each.port;
    try {
      map = read_cluster_map(Server(std::move(node))({"CLUSTER", "SLOTS"}), each);
      why = map.error;
    } catch (const Unreachable& error) {
      why = error.what();
    }
    if (!map.ranges.empty()) break;
  }
  if (map.ranges.empty()) throw Unreachable("no node has a map of the cluster: " + why);
  slots_.assign(hash_slots, 0);
  std::vector<RedisAddress> masters;
  for (const SlotRange& range : map.ranges) {
    auto place = std::ranges::find(masters, range.master);
    if (place == masters.end()) {
      RedisOptions node = options;
      node.host = range.master.host;
      node.port = range.master.port;
      servers_.push_back(std::make_unique<Server>(std::move(node)));
      place = masters.insert(masters.end(), range.master);
    }
    std::fill(slots_.begin() + range.first, slots_.begin() + range.last + 1,
              static_cast<std::size_t>(place - masters.begin()));
  }
}

Server& Fleet::of(std::string_view key) const noexcept {
  return *servers_[slots_.empty() ? 0 : slots_[hash_slot(key)]];
}

}  // namespace sluice::tool
