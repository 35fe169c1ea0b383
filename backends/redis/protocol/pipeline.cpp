// The state machine of Pipeline. A completion may submit calls, which go through the store's inbox,
// and may destroy the store, which abandons all calls. So calls are removed before they complete,
// and those about to end are in a list that abandon() knows.
#include "backends/redis/protocol/pipeline.hpp"
#include "sluice/extend/conclude.hpp"

#include <algorithm>
#include <utility>

namespace sluice::redis_detail {
namespace {

/// The first retry is an EVALSHA after a SCRIPT LOAD; if the script is lost again in between, the
/// next one contains the text itself and cannot miss.
constexpr unsigned attempts_by_hash = 1;
constexpr unsigned max_attempts = 3;

/// The most attempts with the library, which the server may lose again after each load.
constexpr unsigned max_loads = 8;

/// Errors of a replica, which a master does not send.
bool is_wrong_server(Errc word) noexcept {
  return word == Errc::read_only || word == Errc::master_down;
}

/// True if nothing was executed, and the server, or the next one, may decide the call soon.
constexpr bool passes(Errc code) noexcept {
  return code == Errc::loading || code == Errc::read_only || code == Errc::master_down ||
         code == Errc::try_again || code == Errc::cluster_down;
}

}  // namespace

void Pipeline::end(CallPtr call, Errc code) {
  ++(make_error_code(code) == Failure::unknown ? counters_.unknown : counters_.not_executed);
  call->leave();
  call->done.fail(code);
  ended_.push_back(std::move(call));
}

/// The entry of the next request in `out`.
Pipeline::Sent& Pipeline::append_entry(const std::string& out, Time now) {
  Sent& entry = sent_.emplace_back();
  entry.at = now;
  entry.begin = start_ + out.size();
  return entry;
}

void Pipeline::append_load(std::string& out, std::string_view kind, std::string_view text,
                           std::string_view answer, Time now) {
  if (std::ranges::count(loading_, answer) > 0) return;
  append_entry(out, now).loads = answer;
  loading_.push_back(answer);
  append_command(out, {kind, "LOAD", text});
}

/// The entries of a request, and then its bytes.
void Pipeline::append(std::string& out, const Call& call, Time now) {
  const Script& script = *call.request.script;
  const bool by_hash = !functions_ && call.attempts <= (is_bare_ ? 0 : attempts_by_hash);
  if (by_hash && call.attempts > 0) append_load(out, "SCRIPT", script.text, script.sha1, now);
  if (wants_library_) append_load(out, "FUNCTION", library().text, library().name, now);
  if (call.is_asking) {
    append_entry(out, now).asks = true;
    append_command(out, {"ASKING"});
  }
  Sent& entry = append_entry(out, now);
  entry.nonce = call.nonce;
  entry.steps = call.steps;
  entry.output = call.output;
  entry.deadline = call.deadline;
  if (functions_) {
    append_fcall(out, call.request);
  } else if (by_hash) {
    append_evalsha(out, call.request);
  } else {
    append_eval(out, call.request);
  }
}

/// Sends the first call of the queue, or leaves everything as it was and throws.
void Pipeline::send(std::string& out, CallList& queue, Time now) {
  const std::size_t bytes = out.size();
  const std::size_t entries = sent_.size();
  const std::size_t loads = loading_.size();
  try {
    append(out, queue.front(), now);
  } catch (...) {
    out.resize(bytes);
    loading_.resize(loads);
    while (sent_.size() > entries) sent_.pop_back();
    throw;
  }
  wants_library_ = false;
  sent_.back().call = queue.pop_front();
}

void Pipeline::flush(std::string& out, Time now) {
  start_ = taken_;
  for (CallList* queue : {&again_, &waiting_}) {
    while (!queue->empty() && out.size() < chunk_bytes) send(out, *queue, now);
  }
  while (notices_.size() > published_ && out.size() < chunk_bytes) publish(out, now);
  if (wants_info_ && out.size() < chunk_bytes) append_info(out, now);
}

void Pipeline::took(std::string& out, std::size_t bytes) noexcept {
  taken_ += bytes;
  while (has_untaken()) {
    out.resize(sent_.back().begin - start_);
    take_back_last();
  }
}

/// True if there is a request of which the socket took no byte.
bool Pipeline::has_untaken() const noexcept {
  return !sent_.empty() && sent_.back().begin >= taken_;
}

/// Returns the last request to the front of its queue.
void Pipeline::take_back_last() noexcept {
  Sent last = std::move(sent_.back());
  sent_.pop_back();
  if (last.publishes) {
    --published_;
  } else if (!last.loads.empty()) {
    std::erase(loading_, last.loads);
    wants_library_ = functions_;
  } else if (last.informs) {
    wants_info_ = true;
  } else if (last.call) {
    (last.call->attempts > 0 ? again_ : waiting_).push_front(std::move(last.call));
  }
}

void Pipeline::notify(std::string channel) {
  if (muted_ || notices_.size() >= max_notices) return;
  notices_.push_back(std::move(channel));
}

/// Sends the first wake-up, or leaves everything as it was and throws.
void Pipeline::publish(std::string& out, Time now) {
  const std::size_t bytes = out.size();
  try {
    append_command(out, {"PUBLISH", notices_[published_], ""});
    sent_.emplace_back();
  } catch (...) {
    out.resize(bytes);
    throw;
  }
  sent_.back().at = now;
  sent_.back().publishes = true;
  sent_.back().begin = start_ + bytes;
  ++published_;
}

/// Appends a command that is no call, or leaves everything as it was and throws.
Pipeline::Sent& Pipeline::append_alone(std::string& out,
                                       std::initializer_list<std::string_view> words, Time now) {
  const std::size_t bytes = out.size();
  Sent& entry = append_entry(out, now);
  try {
    append_command(out, words);
  } catch (...) {
    out.resize(bytes);
    sent_.pop_back();
    throw;
  }
  return entry;
}

void Pipeline::append_info(std::string& out, Time now) {
  wants_info_ = false;  // first: without memory for it, nobody needs it
  append_alone(out, {"INFO", "memory", "stats"}, now).informs = true;
}

void Pipeline::check(std::string& out, Time now) {
  start_ = taken_;
  append_alone(out, {"PING"}, now).checks = true;
}

Pipeline::Sent Pipeline::take_front() {
  Sent front = std::move(sent_.front());
  sent_.pop_front();
  if (front.publishes) {
    --published_;
    notices_.pop_front();
  }
  if (!front.loads.empty()) std::erase(loading_, front.loads);
  return front;
}

void Pipeline::conclude_call(CallPtr call, const Reply& reply) {
  ++counters_.decided;
  call->leave();
  const bool is_unneeded =
      call->is_alternative && reply.verdicts[0].status == -static_cast<Word>(Errc::id_reused);
  if (is_unneeded) {
    call->done.fail(Errc::cancelled);
  } else {
    conclude({call->asked.data(), call->steps}, {reply.verdicts.data(), call->steps},
             {reply.output.data(), reply.output_count}, reply.at, Source::redis, call->done);
  }
  ended_.push_back(std::move(call));
}

Pipeline::Heard Pipeline::hear_string(std::string_view bytes) {
  if (sent_.empty()) return Heard::nonsense;
  Sent front = take_front();
  if (front.publishes || front.asks || front.checks) return Heard::nonsense;
  if (front.informs) {
    info_ = bytes;
    return Heard::ok;
  }
  if (!front.loads.empty()) {
    ++counters_.scripts_loaded;
    load_error_ = {};
    return bytes == front.loads ? Heard::ok : Heard::nonsense;
  }
  Reply reply;
  if (!decode(reply, bytes, front.nonce, front.steps, front.output)) {
    if (front.call) end(std::move(front.call), Errc::protocol_error);
    return Heard::nonsense;
  }
  has_decided_ = true;
  if (front.call) {
    conclude_call(std::move(front.call), reply);
  } else {
    ++counters_.late_replies;
  }
  return Heard::ok;
}

Pipeline::Heard Pipeline::hear_status(std::string_view text) {
  if (sent_.empty()) return Heard::nonsense;
  Sent front = take_front();
  if (front.asks && text == "OK") return Heard::ok;
  if (front.checks && text == "PONG") return Heard::ok;
  if (front.call) end(std::move(front.call), Errc::protocol_error);
  return Heard::nonsense;
}

Pipeline::Heard Pipeline::hear_integer() {
  if (sent_.empty()) return Heard::nonsense;
  Sent front = take_front();
  if (front.publishes) return Heard::ok;
  if (front.call) end(std::move(front.call), Errc::protocol_error);
  return Heard::nonsense;
}

/// `code`: the error of the call. The library, unlike a script, cannot be sent with a call: a call
/// that was sent after a failed attempt to load it ends, or makes a pause.
Pipeline::Heard Pipeline::ask_again(CallPtr call, Errc code, Time now) {
  const bool in_vain = load_error_ != Errc{} && (call->attempts > 0 || !may_load_);
  if (in_vain && passes(load_error_)) {
    pause(std::move(call), load_error_, now);
  } else if (in_vain || ++call->attempts > (functions_ ? max_loads : max_attempts)) {
    end(std::move(call), in_vain ? load_error_ : code);
  } else {
    wants_library_ = functions_ && loading_.empty();
    again_.push_back(std::move(call));
  }
  return Heard::ok;
}

void Pipeline::redirect(CallPtr call, Errc code, std::string_view message) {
  if (++call->redirections > max_redirections) return end(std::move(call), code);
  try {
    call->redirection = message;
  } catch (const std::bad_alloc&) {
    return end(std::move(call), code);
  }
  redirected_.push_back(std::move(call));
}

void Pipeline::release_unsent(CallList& calls, const std::function<bool(const Call&)>& leaves) {
  for (CallList* queue : {&again_, &waiting_, &paused_}) {
    CallList all;
    all.swap(*queue);
    while (!all.empty()) {
      CallPtr call = all.pop_front();
      const bool stays = !leaves(*call);
      if (!stays) call->attempts = 0;
      if (!stays) call->is_asking = false;
      (stays ? *queue : calls).push_back(std::move(call));
    }
  }
}

/// If the user may not load scripts, the calls send the text. The library is not loaded again on
/// this connection, unless the error is temporary.
void Pipeline::hear_load_error(std::string_view message) {
  if (!functions_) return;
  load_error_ = {};
  if (message.ends_with("already exists")) return;  // by another client
  const Errc code = error_of(message);
  may_load_ =
      code != Errc::no_permission && code != Errc::unknown_command && code != Errc::server_error;
  load_error_ = may_load_ ? code : Errc::no_function;
}

Pipeline::Heard Pipeline::hear_error(std::string_view message, Time now) {
  if (sent_.empty()) return Heard::nonsense;
  Sent front = take_front();
  if (!front.loads.empty()) {
    hear_load_error(message);
    return is_wrong_server(error_of(message)) ? Heard::reconnect : Heard::ok;
  }
  // The reply to the call behind ASKING decides; INFO and PING may be forbidden.
  if (front.asks || front.informs || front.checks) return Heard::ok;
  const Errc code = error_of(message);
  if (code == Errc::no_replicas) is_failing_ = true;
  if (front.publishes) {
    if (code == Errc::busy || passes(code)) return Heard::ok;  // only this one is lost
    muted_ = true;
    notices_.resize(published_);
    return Heard::ok;
  }
  if (!front.call) {
    ++counters_.late_replies;
  } else if (code == (functions_ ? Errc::no_function : Errc::no_script)) {
    return ask_again(std::move(front.call), code, now);
  } else if (passes(code)) {
    pause(std::move(front.call), code, now);
  } else if (in_cluster_ && (code == Errc::moved || code == Errc::ask)) {
    redirect(std::move(front.call), code, message);
  } else {
    end(std::move(front.call), code);
  }
  return is_wrong_server(code) ? Heard::reconnect : Heard::ok;
}

void Pipeline::end_all() {
  while (!ending_.empty()) {
    CallPtr next = ending_.pop_front();
    const Errc code = next->end;
    end(std::move(next), code);
  }
}

/// The call is retried after a pause that grows with each one. The last attempt before the deadline
/// leaves time for its answer; after it the call only waits for its end.
void Pipeline::pause(CallPtr call, Errc code, Time now) noexcept {
  const Span most =
      std::min(longest_pause, least_pause * (Word{2} << std::min(call->pauses++, 10U)));
  const auto more = jitter_.below(static_cast<std::uint64_t>((most - least_pause).count()) + 1);
  call->met = code;
  call->attempts = 0;
  call->resumes = now + least_pause + Span{static_cast<Word>(more)};
  if (call->resumes > call->deadline - least_pause) call->resumes = Time::max();
  resumption_ = std::min(resumption_, call->resumes);
  paused_.push_back(std::move(call));
  is_failing_ = true;
}

/// Calls whose pause has ended are sent before the waiting ones, which are younger.
void Pipeline::resume(Time now) noexcept {
  if (now < resumption_) return;
  resumption_ = Time::max();
  CallList all;
  all.swap(paused_);
  CallList over;
  while (!all.empty()) {
    CallPtr call = all.pop_front();
    const bool is_over = call->resumes <= now;
    if (!is_over) resumption_ = std::min(resumption_, call->resumes);
    (is_over ? over : paused_).push_back(std::move(call));
  }
  while (!waiting_.empty()) over.push_back(waiting_.pop_front());
  waiting_.swap(over);
}

/// Moves the waiting calls for which `code_of` has an error to ending_.
void Pipeline::take_unsent(const auto& code_of) {
  for (CallList* queue : {&again_, &waiting_, &paused_, &redirected_}) {
    CallList all;
    all.swap(*queue);
    while (!all.empty()) {
      CallPtr call = all.pop_front();
      call->end = code_of(*call);
      (call->end != Errc{} ? ending_ : *queue).push_back(std::move(call));
    }
  }
}

/// Moves the call to ending_ and leaves a tombstone in its place.
void Pipeline::bury(Sent& sent) {
  sent.deadline = Time::max();
  sent.in_flight = std::move(sent.call->in_flight);
  sent.call->end = Errc::unknown;
  ending_.push_back(std::move(sent.call));
}

void Pipeline::disconnect(Errc oldest) {
  while (has_untaken()) take_back_last();
  has_decided_ = false;
  loading_.clear();
  for (Sent& sent : sent_) {
    if (!sent.call) continue;
    sent.call->end = std::exchange(oldest, Errc::unknown);
    ending_.push_back(std::move(sent.call));
  }
  sent_.clear();
  wants_library_ = functions_ && !again_.empty();
  may_load_ = true;
  load_error_ = {};
  notices_.clear();
  published_ = 0;
  muted_ = false;
  wants_info_ = false;
  end_all();
}

void Pipeline::expire(Time now, Errc unsent) {
  take_unsent([now, unsent](const Call& call) {
    if (now < call.deadline) return Errc{};
    return call.met != Errc{} ? call.met : unsent;
  });
  for (Sent& sent : sent_) {
    if (!sent.call || sent.deadline > now) continue;
    is_failing_ = true;
    bury(sent);
  }
  resume(now);
  end_all();
}

void Pipeline::cancel_marked() {
  take_unsent([](const Call& call) { return call.cancelled.load() ? Errc::cancelled : Errc{}; });
  for (Sent& sent : sent_) {
    if (sent.call && sent.call->cancelled.load()) bury(sent);
  }
  end_all();
}

void Pipeline::abandon(Errc unsent) {
  while (has_untaken()) take_back_last();
  take_unsent([unsent](const Call&) { return unsent; });
  disconnect();
}

Time Pipeline::next_deadline() const noexcept {
  Time earliest = Time::max();
  const auto look = [&](const auto& entry) { earliest = std::min(earliest, entry.deadline); };
  waiting_.for_each(look);
  again_.for_each(look);
  redirected_.for_each(look);
  paused_.for_each([&](const Call& call) {
    earliest = std::min({earliest, call.deadline, call.resumes});
  });
  std::ranges::for_each(sent_, look);
  return earliest;
}

}  // namespace sluice::redis_detail
