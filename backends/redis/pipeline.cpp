// The state machine of Pipeline. A completion may submit calls, which go through the store's inbox,
// and may destroy the store, which abandons all calls. So calls are taken out before they complete,
// and those that are about to end stand where abandon() finds them.
#include "pipeline.hpp"

#include <algorithm>
#include <utility>

namespace sluice::redis_detail {
namespace {

/// The first retry is an EVALSHA behind a SCRIPT LOAD; if the script is lost again in between, the
/// next carries the text itself, which cannot miss.
constexpr unsigned attempts_by_hash = 1;
constexpr unsigned max_attempts = 3;

}  // namespace

void Pipeline::end(CallPtr call, Errc code) {
  if (code == Errc::unknown || code == Errc::protocol_error) ++counters_.unknown;
  call->leave();
  call->done.fail(code);
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
    while (!queue->empty() && out.size() < chunk_bytes) {
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
  call->leave();
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

void Pipeline::end_all() {
  while (!ending_.empty()) {
    Ending next = std::move(ending_.front());
    ending_.pop_front();
    end(std::move(next.call), next.code);
  }
}

/// Moves the calls that match to ending_; those sent leave a tombstone.
void Pipeline::take_out(const auto& predicate, Errc unsent) {
  for (auto* queue : {&again_, &waiting_}) {
    for (CallPtr& call : *queue) {
      if (predicate(*call)) ending_.push_back({std::move(call), unsent});
    }
    std::erase(*queue, nullptr);
  }
  for (Sent& sent : sent_) {
    if (sent.call && predicate(*sent.call)) {
      ending_.push_back({std::move(sent.call), Errc::unknown});
    }
  }
}

void Pipeline::disconnect(Errc oldest) {
  loading_.clear();
  for (Sent& sent : sent_) {
    if (sent.call) ending_.push_back({std::move(sent.call), std::exchange(oldest, Errc::unknown)});
  }
  sent_.clear();
  end_all();
}

void Pipeline::expire(Time now, Errc unsent) {
  take_out([now](const Call& call) { return call.deadline <= now; }, unsent);
  end_all();
}

void Pipeline::cancel_marked() {
  take_out([](const Call& call) { return call.cancelled.load(); }, Errc::cancelled);
  end_all();
}

void Pipeline::abandon(Errc unsent) {
  take_out([](const Call&) { return true; }, unsent);
  sent_.clear();
  loading_.clear();
  end_all();
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
