// The state machine of Pipeline. A completion may re-enter the store, never the pipeline: what it
// submits goes through the store's inbox. So a call is taken out before it is completed.
#include "pipeline.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace sluice::redis_detail {
namespace {

/// The first retry is an EVALSHA behind a SCRIPT LOAD; if the script is lost again in between, the
/// next carries the text itself, which cannot miss.
constexpr unsigned attempts_by_hash = 1;
constexpr unsigned max_attempts = 3;

bool erase_first(auto& queue, const auto& predicate, CallPtr& found) {
  const auto it = std::ranges::find_if(queue, predicate);
  if (it == queue.end()) return false;
  found = std::move(*it);
  queue.erase(it);
  return true;
}

}  // namespace

void Pipeline::end(CallPtr call, Errc code) {
  if (code == Errc::unknown || code == Errc::protocol_error) ++counters_.unknown;
  call->on_stop.reset();
  call->fail(code);
  ended_.push_back(std::move(call));
}

void Pipeline::send(std::string& out, CallPtr call, Time now) {
  const Script* script = call->request.script;
  if (call->attempts > attempts_by_hash) {
    append_eval(out, call->request);
  } else {
    if (call->attempts > 0 && !std::ranges::count(loading_, script)) {
      append_command(out, {"SCRIPT", "LOAD", script->text});
      loading_.push_back(script);
      sent_.push_back({nullptr, script, 0, 0, now});
    }
    append_evalsha(out, call->request);
  }
  const std::uint64_t nonce = call->nonce;
  const std::size_t steps = call->steps;
  sent_.push_back({std::move(call), nullptr, nonce, steps, now});
}

void Pipeline::flush(std::string& out, Time now) {
  for (auto* queue : {&again_, &waiting_}) {
    while (!queue->empty()) {
      CallPtr call = std::move(queue->front());
      queue->pop_front();
      send(out, std::move(call), now);
    }
  }
}

Pipeline::Sent Pipeline::take_front() {
  Sent front = std::move(sent_.front());
  sent_.pop_front();
  if (front.loads != nullptr) std::erase(loading_, front.loads);
  return front;
}

void Pipeline::conclude_call(CallPtr call, const Reply& reply) {
  call->on_stop.reset();
  conclude({call->limits.data(), call->steps}, {reply.verdicts.data(), call->steps}, reply.at,
           Source::redis, call->done);
  ended_.push_back(std::move(call));
}

Pipeline::Heard Pipeline::hear_string(std::string_view bytes) {
  if (sent_.empty()) return Heard::nonsense;
  Sent front = take_front();
  if (front.loads != nullptr) {
    ++counters_.scripts_loaded;
    return bytes == front.loads->sha1 ? Heard::ok : Heard::nonsense;
  }
  Reply reply;
  if (!decode(reply, bytes, front.nonce, front.steps)) {
    if (front.call) end(std::move(front.call), Errc::protocol_error);
    return Heard::nonsense;
  }
  if (front.call) {
    conclude_call(std::move(front.call), reply);
  } else {
    ++counters_.late_replies;
  }
  return Heard::ok;
}

Pipeline::Heard Pipeline::ask_again(CallPtr call) {
  if (++call->attempts > max_attempts) {
    end(std::move(call), Errc::no_script);
  } else {
    again_.push_back(std::move(call));
  }
  return Heard::ok;
}

Pipeline::Heard Pipeline::hear_error(std::string_view message) {
  if (sent_.empty()) return Heard::nonsense;
  Sent front = take_front();
  // A script that may not be loaded is sent as a text by the calls that need it.
  if (front.loads != nullptr) return Heard::ok;
  const Errc code = error_of(message);
  if (!front.call) {
    ++counters_.late_replies;
  } else if (code == Errc::no_script) {
    return ask_again(std::move(front.call));
  } else {
    end(std::move(front.call), code);
  }
  const bool wrong_server = code == Errc::read_only || code == Errc::master_down;
  return wrong_server ? Heard::reconnect : Heard::ok;
}

void Pipeline::disconnect() {
  loading_.clear();
  while (!sent_.empty()) {
    Sent front = take_front();
    if (front.call) end(std::move(front.call), Errc::unknown);
  }
}

void Pipeline::expire(Time now, Errc unsent) {
  // Taken out first: a completion must find the queues in order.
  std::vector<CallPtr> late;
  const auto is_late = [now](const CallPtr& call) { return call && call->deadline <= now; };
  for (auto* queue : {&again_, &waiting_}) {
    const auto tail = std::stable_partition(queue->begin(), queue->end(), std::not_fn(is_late));
    std::move(tail, queue->end(), std::back_inserter(late));
    queue->erase(tail, queue->end());
  }
  for (auto& call : late) end(std::move(call), unsent);
  late.clear();
  for (auto& sent : sent_) {
    if (is_late(sent.call)) late.push_back(std::move(sent.call));
  }
  for (auto& call : late) end(std::move(call), Errc::unknown);
}

void Pipeline::cancel(std::uint64_t nonce) {
  const auto is_it = [nonce](const CallPtr& call) { return call && call->nonce == nonce; };
  CallPtr call;
  if (erase_first(waiting_, is_it, call) || erase_first(again_, is_it, call)) {
    return end(std::move(call), Errc::cancelled);
  }
  const auto sent = std::ranges::find_if(sent_, is_it, &Sent::call);
  if (sent != sent_.end()) end(std::move(sent->call), Errc::unknown);
}

void Pipeline::abandon(Errc unsent) {
  disconnect();
  for (auto* queue : {&again_, &waiting_}) {
    while (!queue->empty()) {
      CallPtr call = std::move(queue->front());
      queue->pop_front();
      end(std::move(call), unsent);
    }
  }
}

Time Pipeline::next_deadline() const noexcept {
  Time earliest = Time::max();
  const auto look = [&](const CallPtr& call) {
    if (call) earliest = std::min(earliest, call->deadline);
  };
  std::ranges::for_each(waiting_, look);
  std::ranges::for_each(again_, look);
  for (const Sent& sent : sent_) look(sent.call);
  return earliest;
}

}  // namespace sluice::redis_detail
