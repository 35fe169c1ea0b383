// The pipeline against its rules, which are stated here once more on plain lists, and driven at
// random: calls, writes that a socket takes in part, replies of every kind, lost scripts, pauses,
// redirections, timeouts, stop requests, wake-ups, lost connections. After each step everything
// that can be observed is compared. Threading: single-threaded.
#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include "tests/redis/protocol/pipeline_world.hpp"
#include "tests/support/seed.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {

/// What the driver lets a server say, and the code that a call ends with, if it ends.
struct Words {
  std::string text;
  Errc code;
};
const std::vector<Words> words{{"LOADING wait", Errc::loading},
                               {"READONLY no", Errc::read_only},
                               {"MASTERDOWN no", Errc::master_down},
                               {"TRYAGAIN later", Errc::try_again},
                               {"CLUSTERDOWN no", Errc::cluster_down},
                               {"NOSCRIPT lost", Errc::no_script},
                               {"ERR Function not found", Errc::no_function},
                               {"MOVED 1 10.0.0.2:6379", Errc::moved},
                               {"ASK 1 10.0.0.2:6379", Errc::ask},
                               {"OOM no", Errc::out_of_memory},
                               {"NOREPLICAS no", Errc::no_replicas},
                               {"MISCONF no", Errc::misconfigured},
                               {"BUSY no", Errc::busy},
                               {"NOPERM no", Errc::no_permission},
                               {"CROSSSLOT no", Errc::cross_slot},
                               {"ERR unknown command 'FCALL'", Errc::unknown_command},
                               {"ERR upstream failure", Errc::server_error},
                               {"ERR Library 'it' already exists", Errc::server_error}};

bool is_of_replica(Errc code) { return code == Errc::read_only || code == Errc::master_down; }
bool passes(Errc code) {
  return is_of_replica(code) || code == Errc::loading || code == Errc::try_again ||
         code == Errc::cluster_down;
}

struct Reply {
  enum class Kind { string, status, integer, error };
  Kind kind;
  std::string text{};
  Errc code{};        // of an error
  bool fits = false;  // it is the right answer to a call
};

/// A call, by its number, which is its nonce.
struct Ask {
  Call* call = nullptr;  // until it has ended
  std::size_t steps = 1;
  Time deadline{};
  unsigned attempts = 0;
  unsigned pauses = 0;
  unsigned redirections = 0;
  Errc met{};
  Time resumes{};
  bool is_asking = false;
};

/// What was written and not answered. The offsets are of all bytes that were ever written.
struct Entry {
  enum class Kind { call, load, asking, publish, info, ping };
  Kind kind;
  std::size_t number = 0;  // of the call
  bool is_dead = false;    // its call has ended
  std::string loads{};
  Time at{};
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Run {
 public:
  Run(Random& random, RedisScripts how, bool in_cluster, std::set<std::string>& seen)
      : random_(random),
        functions_(how == RedisScripts::functions),
        in_cluster_(in_cluster),
        seen_(seen),
        favourite_(words[random.below(words.size())]),
        likes_(random.one_in(2)),
        pipeline_(how, random.next(), in_cluster) {}

  void step() {
    const auto what = random_.below(16);
    if (what < 3) {
      submit();
    } else if (what < 6) {
      write();
    } else if (what < 10) {
      for (auto n = random_.below(8); n > 0 && hear(); --n) compare();
    } else if (what < 12) {
      pass_time();
    } else if (what == 12) {
      cancel();
    } else if (what == 13) {
      ask_aside();
    } else if (what == 14) {
      move_on();
    } else if (random_.one_in(10)) {
      disconnect(random_.one_in(2) ? Errc::unknown : Errc::not_connected);
    }
    compare();
  }

  void end() {
    pipeline_.abandon(Errc::shut_down);
    take_back();
    for (auto* list : {&waiting_, &again_, &paused_, &redirected_}) end_all(*list, Errc::shut_down);
    lose_sent(Errc::unknown);
    compare();
    CHECK_FALSE(pipeline_.has_sent());
    CHECK(pipeline_.count() == 0);
    CHECK(places_ == 0);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      wrong += answers_[i].answers == (i < asks_.size() ? 1U : 0U) ? 0U : 1U;
    }
    CHECK(wrong == 0);
  }

 private:
  using List = std::deque<std::size_t>;

  void saw(const std::string& what) { seen_.insert(what); }

  // The calls.

  void submit() {
    const std::size_t number = asks_.size();
    if (number + 1 == answers_.size()) return;
    Ask& ask = asks_.emplace_back();
    ask.steps = random_.one_in(3) ? 2 : 1;
    ask.is_asking = in_cluster_ && random_.one_in(4);
    ask.deadline = random_.one_in(3)
                       ? Time::max()
                       : now_ + Span{random_.between(0, random_.one_in(3) ? 500'000 : 20'000)};
    CallPtr call;
    if (pipeline_.ended().empty() || random_.one_in(4)) {
      call = std::make_unique<Call>();
    } else {  // used memory is as good
      call = pipeline_.ended().pop_front();
      call->renew();
      --memories_;
    }
    prepare(*call, answers_[number], number, ask.deadline, ask.steps);
    call->is_asking |= ask.is_asking;
    ++places_;
    call->in_flight = redis_detail::InFlight(places_);
    ask.call = call.get();
    waiting_.push_back(number);
    pipeline_.submit(std::move(call));
  }

  void ends(std::size_t number, Errc code) {
    const Asked& asked = answers_[number];
    REQUIRE(asked.answers == 1);
    REQUIRE(asked.error == code);
    ++(asked.error == Failure::unknown ? unknown_ : not_executed_);
    asks_[number].call = nullptr;
    ++memories_;
    saw(asked.error.message());
  }
  void end_all(List& list, Errc code) {
    for (const std::size_t number : std::exchange(list, {})) ends(number, code);
  }
  /// Ends those of all lists of which `code_of` says so.
  void end_unsent(const auto& code_of) {
    for (auto* list : {&again_, &waiting_, &paused_, &redirected_}) {
      std::erase_if(*list, [&](std::size_t number) {
        const Errc code = code_of(asks_[number]);
        if (code != Errc{}) ends(number, code);
        return code != Errc{};
      });
    }
  }
  /// The entry keeps the place of its call.
  void bury(Entry& entry) {
    entry.is_dead = true;
    ends(entry.number, Errc::unknown);
  }
  [[nodiscard]] static bool is_live(const Entry& entry) {
    return entry.kind == Entry::Kind::call && !entry.is_dead;
  }

  // What is written.

  void write() {
    if (taken_ == start_ + out_.size()) flush();
    take(random_.one_in(2) ? out_.size() : random_.one_in(4) ? 0 : random_.below(out_.size() + 1));
  }

  /// The socket takes so many bytes at most.
  void take(std::size_t most) {
    const std::size_t before = start_ + out_.size();
    const std::size_t bytes = std::min(most, before - taken_);
    taken_ += bytes;
    pipeline_.took(out_, bytes);
    const std::size_t left = take_back().value_or(before);
    REQUIRE(start_ + out_.size() == left);
    if (taken_ < left) saw("a torn request");
  }

  /// What no byte was taken of leaves the write; where that began.
  std::optional<std::size_t> take_back() {
    std::optional<std::size_t> begin;
    while (!sent_.empty() && sent_.back().begin >= taken_) {
      const Entry last = sent_.back();
      sent_.pop_back();
      begin = last.begin;
      if (last.kind == Entry::Kind::publish) --published_;
      if (last.kind == Entry::Kind::info) wants_info_ = true;
      if (last.kind == Entry::Kind::load) {
        loading_.erase(last.loads);
        wants_library_ = functions_;
        saw("a load is taken back");
      }
      if (is_live(last)) {
        (asks_[last.number].attempts > 0 ? again_ : waiting_).push_front(last.number);
      }
    }
    return begin;
  }

  void flush() {
    start_ = taken_;
    out_.clear();
    pipeline_.flush(out_, now_);
    rest_ = out_;
    const auto has_room = [&] { return out_.size() - rest_.size() < Pipeline::chunk_bytes; };
    for (auto* list : {&again_, &waiting_}) {
      for (; !list->empty() && has_room(); list->pop_front()) send(list->front());
      if (!list->empty()) saw("a full chunk");
    }
    while (published_ < notices_.size() && has_room()) {
      expect({Entry::Kind::publish}, {"PUBLISH", notices_[published_++], ""});
    }
    if (wants_info_ && has_room()) {
      expect({Entry::Kind::info}, {"INFO", "memory", "stats"});
      wants_info_ = false;
    }
    REQUIRE(rest_.empty());
  }

  void send(std::size_t number) {
    const Ask& ask = asks_[number];
    const redis_detail::Script& script = *ask.call->request.script;
    const bool by_hash = !functions_ && ask.attempts <= (is_bare_ ? 0U : 1U);
    if (by_hash && ask.attempts > 0) load(script.sha1, {"SCRIPT", "LOAD", script.text});
    const auto& [name, text] = redis_detail::library();
    if (std::exchange(wants_library_, false)) load(name, {"FUNCTION", "LOAD", text});
    if (ask.is_asking) expect({Entry::Kind::asking}, {"ASKING"});
    const Command command = next({Entry::Kind::call, number});
    REQUIRE(command[0] == (functions_ ? "FCALL" : by_hash ? "EVALSHA" : "EVAL"));
    REQUIRE(nonce_of(command) == number);
    REQUIRE(steps_of(command) == ask.steps);
    saw(command[0]);
  }
  void load(const std::string& name, const Command& command) {
    if (!loading_.insert(name).second) return;
    expect({.kind = Entry::Kind::load, .loads = name}, command);
    saw(command[0]);
  }

  void expect(Entry entry, const Command& command) { REQUIRE(next(std::move(entry)) == command); }
  /// The next command that was written.
  Command next(Entry entry) {
    entry.at = now_;
    entry.begin = start_ + out_.size() - rest_.size();
    auto command = take_command(rest_);
    REQUIRE(command);
    entry.end = start_ + out_.size() - rest_.size();
    sent_.push_back(std::move(entry));
    return *command;
  }

  // Replies.

  /// False if nothing can be answered.
  bool hear() {
    if (sent_.empty()) {
      if (!random_.one_in(50)) return false;
      say(draw_anything());
      REQUIRE(heard_ == Heard::nonsense);  // nobody has asked
      return false;
    }
    if (sent_.front().end > taken_) return false;
    const Entry front = sent_.front();
    sent_.pop_front();
    loading_.erase(front.loads);
    if (front.kind == Entry::Kind::publish) {
      notices_.pop_front();
      --published_;
    }
    const Reply reply = random_.one_in(100) ? draw_anything() : draw_reply(front);
    say(reply);
    const Heard expected =
        reply.kind == Reply::Kind::error ? hear_error(front, reply) : hear_other(front, reply);
    CAPTURE(reply.text, static_cast<int>(front.kind));
    REQUIRE(heard_ == expected);
    if (expected == Heard::reconnect) saw("a server that is left");
    if (expected != Heard::nonsense) return true;
    saw("nonsense");
    disconnect(Errc::protocol_error);
    return false;
  }

  void say(const Reply& reply) {
    heard_ = reply.kind == Reply::Kind::error     ? pipeline_.hear_error(reply.text, now_)
             : reply.kind == Reply::Kind::string  ? pipeline_.hear_string(reply.text)
             : reply.kind == Reply::Kind::integer ? pipeline_.hear_integer()
                                                  : pipeline_.hear_status(reply.text);
  }

  Reply draw_reply(const Entry& entry) {
    if (entry.kind == Entry::Kind::load && random_.one_in(12)) return error_of(words.back());
    const bool is_call = entry.kind == Entry::Kind::call;
    if (likes_ && is_call ? !random_.one_in(8) : random_.one_in(is_call ? 2 : 6)) {
      return draw_error();
    }
    switch (entry.kind) {
      case Entry::Kind::call:
        return {.kind = Reply::Kind::string, .text = answer_to(entry), .fits = true};
      case Entry::Kind::load:
        return {.kind = Reply::Kind::string, .text = entry.loads};
      case Entry::Kind::info:
        return {.kind = Reply::Kind::string, .text = "text " + std::to_string(random_.next())};
      case Entry::Kind::publish:
        return {.kind = Reply::Kind::integer};
      default:
        return {.kind = Reply::Kind::status,
                .text = entry.kind == Entry::Kind::ping ? "PONG" : "OK"};
    }
  }
  Reply draw_error() {
    return error_of(likes_ && !random_.one_in(8) ? favourite_ : words[random_.below(words.size())]);
  }
  static Reply error_of(const Words& said) {
    return {.kind = Reply::Kind::error, .text = said.text, .code = said.code};
  }
  /// Perhaps what some entry waits for, and perhaps what none does.
  Reply draw_anything() {
    if (random_.one_in(4)) return draw_error();
    if (random_.one_in(4)) return {.kind = Reply::Kind::integer};
    const std::array texts{std::string("OK"),
                           std::string("PONG"),
                           std::string(40, 'a'),
                           redis_detail::library().name,
                           payload(~std::uint64_t{0}, 1, {{Verdict::allowed, 1, 0, 1}}),
                           payload(random_.below(asks_.size() + 1), 1, {{2, 0, 0, 0}})};
    return {.kind = random_.one_in(2) ? Reply::Kind::status : Reply::Kind::string,
            .text = texts[random_.below(texts.size())]};
  }
  std::string answer_to(const Entry& entry) {
    std::string bytes = payload(entry.number, ++at_, {});
    for (std::size_t i = 0; i < asks_[entry.number].steps; ++i) {
      bytes += payload(0, 0, {{Verdict::allowed, 1, 0, 1}}).substr(16);
    }
    return bytes;
  }

  Heard hear_other(const Entry& entry, const Reply& reply) {
    const auto is = [&](Entry::Kind kind, Reply::Kind reply_kind) {
      return entry.kind == kind && reply.kind == reply_kind;
    };
    if (is(Entry::Kind::publish, Reply::Kind::integer)) return Heard::ok;
    if (is(Entry::Kind::asking, Reply::Kind::status) && reply.text == "OK") return Heard::ok;
    if (is(Entry::Kind::ping, Reply::Kind::status) && reply.text == "PONG") return Heard::ok;
    if (is(Entry::Kind::info, Reply::Kind::string)) {
      REQUIRE(pipeline_.take_info() == reply.text);
      REQUIRE(pipeline_.take_info().empty());
      return Heard::ok;
    }
    if (is(Entry::Kind::load, Reply::Kind::string)) {
      ++loaded_;
      load_error_ = {};
      return reply.text == entry.loads ? Heard::ok : Heard::nonsense;
    }
    if (entry.kind != Entry::Kind::call || !reply.fits) {
      if (is_live(entry)) ends(entry.number, Errc::protocol_error);
      return Heard::nonsense;
    }
    has_decided_ = true;
    if (entry.is_dead) {
      leave_late();
      return Heard::ok;
    }
    const Asked& asked = answers_[entry.number];
    REQUIRE(was_decided(asked, at_));
    ++decided_;
    ++memories_;
    asks_[entry.number].call = nullptr;
    saw("decided");
    return Heard::ok;
  }

  void leave_late() {
    ++late_;
    saw("late");
  }

  Heard hear_error(const Entry& entry, const Reply& reply) {
    const Errc code = reply.code;
    const Heard heard = is_of_replica(code) ? Heard::reconnect : Heard::ok;
    switch (entry.kind) {
      case Entry::Kind::asking:
      case Entry::Kind::info:
      case Entry::Kind::ping:
        return Heard::ok;
      case Entry::Kind::load:
        if (functions_) hear_load_error(reply);
        return heard;
      case Entry::Kind::publish:
        is_failing_ |= code == Errc::no_replicas;
        if (code == Errc::busy || passes(code)) return Heard::ok;
        is_muted_ = true;
        notices_.resize(published_);
        saw("mute");
        return Heard::ok;
      default:
        break;
    }
    is_failing_ |= code == Errc::no_replicas;
    if (entry.is_dead) {
      leave_late();
    } else if (code == (functions_ ? Errc::no_function : Errc::no_script)) {
      ask_again(entry.number, code);
    } else if (passes(code)) {
      pause(entry.number, code);
    } else if (in_cluster_ && (code == Errc::moved || code == Errc::ask)) {
      redirect(entry.number, reply);
    } else {
      ends(entry.number, code);
    }
    return heard;
  }

  /// A load that fails for good is not tried again on this connection; a script travels with its
  /// call then.
  void hear_load_error(const Reply& reply) {
    load_error_ = {};
    if (reply.text.ends_with("already exists")) return saw("already loaded");
    const Errc code = reply.code;
    may_load_ =
        code != Errc::no_permission && code != Errc::unknown_command && code != Errc::server_error;
    load_error_ = may_load_ ? code : Errc::no_function;
    saw(may_load_ ? "a load fails for now" : "a load is forbidden");
  }

  void ask_again(std::size_t number, Errc code) {
    Ask& ask = asks_[number];
    if (load_error_ != Errc{} && (ask.attempts > 0 || !may_load_)) {
      return passes(load_error_) ? pause(number, load_error_) : ends(number, load_error_);
    }
    const unsigned most = functions_ ? 8 : 3;
    if (++ask.attempts > most) {
      saw("lost too often");
      return ends(number, code);
    }
    wants_library_ = functions_ && loading_.empty();
    again_.push_back(number);
  }

  void pause(std::size_t number, Errc code) {
    Ask& ask = asks_[number];
    const Span most = std::min<Span>(100ms, 5ms * (2 << std::min(ask.pauses++, 10U)));
    ask.met = code;
    ask.attempts = 0;
    ask.resumes = ask.call->resumes;  // drawn
    if (ask.resumes == Time::max()) {
      REQUIRE(now_ + most > ask.deadline - 5ms);  // there would be no time for an answer
      saw("the last pause");
    } else {
      REQUIRE(ask.resumes >= now_ + 5ms);
      REQUIRE(ask.resumes <= now_ + most);
      REQUIRE(ask.resumes <= ask.deadline - 5ms);
    }
    resumption_ = std::min(resumption_, ask.resumes);
    is_failing_ = true;
    paused_.push_back(number);
  }

  void redirect(std::size_t number, const Reply& reply) {
    if (++asks_[number].redirections > 5) {
      saw("sent on too often");
      return ends(number, reply.code);
    }
    REQUIRE(asks_[number].call->redirection == reply.text);
    redirected_.push_back(number);
  }

  // What else happens.

  void pass_time() {
    const Time next = pipeline_.next_deadline();
    const bool jumps = next != Time::max() && next > now_ && random_.one_in(2);
    if (jumps && random_.one_in(2)) {
      now_ = next - 1us;
      pipeline_.expire(now_, Errc::timed_out);
      if (now_ >= resumption_) resume();  // of nobody: those that had paused so long have ended
      compare();
    }
    now_ = jumps ? next : now_ + Span{random_.between(0, random_.one_in(10) ? 100'000 : 2'000)};
    const Errc unsent = random_.one_in(2) ? Errc::timed_out : Errc::not_connected;
    pipeline_.expire(now_, unsent);
    end_unsent([&](const Ask& ask) {
      return now_ < ask.deadline ? Errc{} : ask.met != Errc{} ? ask.met : unsent;
    });
    for (Entry& entry : sent_) {
      if (!is_live(entry) || now_ < asks_[entry.number].deadline) continue;
      bury(entry);
      is_failing_ = true;
    }
    if (now_ >= resumption_) resume();
  }
  /// Those whose pauses are over go before the younger ones, in their order.
  void resume() {
    List over;
    resumption_ = Time::max();
    std::erase_if(paused_, [&](std::size_t number) {
      const bool is_over = asks_[number].resumes <= now_;
      if (is_over) over.push_back(number);
      if (!is_over) resumption_ = std::min(resumption_, asks_[number].resumes);
      return is_over;
    });
    if (over.size() > 1) saw("pauses end together");
    waiting_.insert(waiting_.begin(), over.begin(), over.end());
  }

  void cancel() {
    std::set<std::size_t> marked;
    for (auto n = random_.below(3); n > 0 && !asks_.empty(); --n) {
      const std::size_t number = random_.below(asks_.size());
      if (asks_[number].call == nullptr) continue;
      asks_[number].call->cancelled = true;
      marked.insert(number);
    }
    pipeline_.cancel_marked();
    end_unsent([&](const Ask& ask) {
      const auto number = static_cast<std::size_t>(&ask - asks_.data());
      return marked.contains(number) ? Errc::cancelled : Errc{};
    });
    for (Entry& entry : sent_) {
      if (is_live(entry) && marked.contains(entry.number)) bury(entry);
    }
  }

  /// Wake-ups, INFO and PING.
  void ask_aside() {
    if (random_.one_in(3) && sent_.empty() && taken_ == start_ + out_.size()) {
      start_ = taken_;
      out_.clear();
      pipeline_.check(out_, now_);
      rest_ = out_;
      expect({Entry::Kind::ping}, {"PING"});
      compare();
      return take(random_.one_in(4) ? 0 : 100);
    }
    if (random_.one_in(4)) {
      pipeline_.ask_info();
      wants_info_ = !is_bare_;
      return;
    }
    const std::string channel = "channel" + std::to_string(random_.below(9));
    pipeline_.notify(channel);
    if (!is_muted_) notices_.push_back(channel);
  }

  /// Calls go to the next node, which is this one again.
  void move_on() {
    while (!redirected_.empty()) {
      CallPtr call = pipeline_.redirected().pop_front();
      const std::size_t number = redirected_.front();
      redirected_.pop_front();
      REQUIRE(call.get() == asks_[number].call);
      asks_[number].is_asking = call->is_asking = call->redirection.starts_with("ASK");
      waiting_.push_back(number);
      pipeline_.submit(std::move(call));
      saw("sent on");
    }
    if (!random_.one_in(20)) return;
    redis_detail::CallList calls;
    pipeline_.release_unsent(calls, [](const Call& call) { return call.nonce % 2 == 0; });
    List released;
    for (auto* list : {&again_, &waiting_, &paused_}) {
      std::erase_if(*list, [&](std::size_t number) {
        if (number % 2 == 0) released.push_back(number);
        return number % 2 == 0;
      });
    }
    REQUIRE(calls.size() == released.size());
    for (const std::size_t number : released) {
      CallPtr call = calls.pop_front();
      Ask& ask = asks_[number];
      REQUIRE(call.get() == ask.call);
      REQUIRE((call->attempts == 0 && !call->is_asking));
      ask.attempts = 0;
      ask.is_asking = false;
      waiting_.push_back(number);
      pipeline_.submit(std::move(call));
    }
  }

  void disconnect(Errc oldest) {
    pipeline_.disconnect(oldest);
    take_back();
    lose_sent(oldest);
    compare();
    if (random_.one_in(4)) return;  // as if nothing had been told of the next one
    is_bare_ = is_muted_ = random_.one_in(8);
    pipeline_.begin(is_bare_);
    saw("a new connection");
  }
  void lose_sent(Errc oldest) {
    for (Entry& entry : sent_) {
      if (is_live(entry)) ends(entry.number, std::exchange(oldest, Errc::unknown));
    }
    sent_.clear();
    loading_.clear();
    notices_.clear();
    published_ = 0;
    out_.clear();
    start_ = taken_;
    has_decided_ = wants_info_ = is_muted_ = false;
    wants_library_ = functions_ && !again_.empty();
    may_load_ = true;
    load_error_ = {};
  }

  // Everything that can be observed.

  void compare() {
    using Figures = std::vector<std::int64_t>;
    const auto& counters = pipeline_.counters();
    const auto figures = [](auto... each) { return Figures{static_cast<std::int64_t>(each)...}; };
    const auto us = [](Time time) { return time.time_since_epoch().count(); };
    const auto unsent = waiting_.size() + again_.size() + paused_.size();
    const auto dead =
        std::ranges::count_if(sent_, [](const Entry& entry) { return entry.is_dead; });
    const auto live = std::ranges::count_if(sent_, is_live);
    const Figures seen = figures(
        counters.decided.load(), counters.not_executed.load(), counters.unknown.load(),
        counters.late_replies.load(), counters.scripts_loaded.load(), pipeline_.sent_count(),
        pipeline_.count(), pipeline_.has_unsent(), pipeline_.redirected().size(),
        pipeline_.has_decided(), pipeline_.take_failing(), pipeline_.is_checking(),
        pipeline_.ended().size(), us(pipeline_.next_deadline()), us(pipeline_.next_resumption()),
        us(sent_.empty() ? Time{} : pipeline_.oldest_sent()), places_.load());
    REQUIRE(
        seen ==
        figures(decided_, not_executed_, unknown_, late_, loaded_, sent_.size(),
                unsent + sent_.size(),
                !waiting_.empty() || !again_.empty() || wants_info_ || notices_.size() > published_,
                redirected_.size(), has_decided_, std::exchange(is_failing_, false),
                !sent_.empty() && sent_.front().kind == Entry::Kind::ping, memories_,
                us(next_deadline()), us(resumption_), us(sent_.empty() ? Time{} : sent_.front().at),
                unsent + redirected_.size() + static_cast<std::size_t>(live + dead)));
  }
  [[nodiscard]] Time next_deadline() const {
    Time next = Time::max();
    for (const auto* list : {&waiting_, &again_, &redirected_, &paused_}) {
      for (const std::size_t number : *list) next = std::min(next, asks_[number].deadline);
    }
    for (const std::size_t number : paused_) next = std::min(next, asks_[number].resumes);
    for (const Entry& entry : sent_) {
      if (is_live(entry)) next = std::min(next, asks_[entry.number].deadline);
    }
    return next;
  }

  Random& random_;
  const bool functions_;
  const bool in_cluster_;
  std::set<std::string>& seen_;
  const Words& favourite_;  // of the server, if it has one
  const bool likes_;
  std::atomic<std::size_t> places_{0};
  Crowd answers_{120};
  Pipeline pipeline_;
  Heard heard_{};
  Time now_ = to_time(1'000'000);
  Word at_ = 0;  // of the last answer

  std::vector<Ask> asks_;
  List waiting_, again_, paused_, redirected_;
  Time resumption_ = Time::max();  // the earliest, or earlier
  std::deque<Entry> sent_;
  std::string out_, rest_;
  std::size_t start_ = 0, taken_ = 0;  // offsets of all bytes
  std::set<std::string> loading_;
  bool wants_library_ = false;
  bool may_load_ = true;
  Errc load_error_{};
  std::deque<std::string> notices_;
  std::size_t published_ = 0;
  bool wants_info_ = false, is_muted_ = false, is_bare_ = false;
  bool is_failing_ = false, has_decided_ = false;
  std::size_t decided_ = 0, not_executed_ = 0, unknown_ = 0, late_ = 0, loaded_ = 0, memories_ = 0;
};

}  // namespace

TEST_CASE("a pipeline does what its rules say, whatever callers, servers and sockets do",
          "[pipeline][cluster][functions][watch][idle]") {
  Random random("a pipeline does what its rules say, whatever callers, servers and sockets do");
  CAPTURE(random.repeat());
  const auto how = GENERATE(RedisScripts::eval, RedisScripts::functions);
  const bool in_cluster = GENERATE(false, true);
  CAPTURE(how == RedisScripts::eval, in_cluster);
  // The runs mean something only if all of this happened.
  std::vector<std::string> wanted{"decided",
                                  "late",
                                  "nonsense",
                                  "mute",
                                  "a torn request",
                                  "a load is taken back",
                                  "a server that is left",
                                  "a new connection",
                                  "the last pause",
                                  "pauses end together",
                                  "lost too often"};
  const auto want = [&](std::initializer_list<std::string> more) {
    wanted.insert(wanted.end(), more);
  };
  if (in_cluster) want({"sent on", "sent on too often"});
  if (how == RedisScripts::eval) want({"EVALSHA", "SCRIPT", "EVAL"});
  if (how == RedisScripts::functions) {
    want({"FCALL", "FUNCTION", "already loaded", "a load fails for now", "a load is forbidden",
          "a full chunk"});  // the library is one
  }
  for (const Words& each : words) want({make_error_code(each.code).message()});
  for (const Errc code : {Errc::unknown, Errc::protocol_error, Errc::timed_out, Errc::cancelled,
                          Errc::not_connected}) {
    want({make_error_code(code).message()});
  }
  std::set<std::string> seen;
  const auto has_seen = [&](const std::string& name) { return seen.contains(name); };
  const std::size_t least = scaled(150, 15);
  for (std::size_t i = 0; i < least || (i < 3'000 && !std::ranges::all_of(wanted, has_seen)); ++i) {
    Run run(random, how, in_cluster, seen);
    for (int step = 0; step < 600; ++step) run.step();
    run.end();
  }
  for (const std::string& name : wanted) {
    INFO(name);
    CHECK(has_seen(name));
  }
}
