#include "src/waiting/release.hpp"

#include "sluice/limiters/waitable.hpp"
#include "src/waiting/wait_queues.hpp"

namespace sluice::detail {

Release::Release(const Store& store, const Step& refund,
                 std::shared_ptr<WaitQueues> queues) noexcept
    : steps_{refund, refund},
      refund_output_(output_count(*refund.operation, refund.table.size())),
      queues_(std::move(queues)) {
  if (!queues_) return;
  try {
    queue_ = queue_key(refund.key);
    if (!queues_->has_tickets_at(store)) return;
    tag_ = refund.key.tag();
    wait_line_ = wait_line_name(refund.key);
    steps_[1] = {&wait_line_peek, {tag_, wait_line_}, {word_limit}};
    count_ = 2;
  } catch (const std::bad_alloc&) {
    queues_ = nullptr;  // the first waiter asks again by its own timer
  }
}

void Release::wake(Store& store, std::span<const Word> output) const noexcept {
  if (!queues_) return;
  const Word first = count_ == 2 ? output[refund_output_ + 1] : 0;
  if (first == 0 || first == queues_->client()) {
    queues_->wake_first(queue_);
  } else {
    wake_client(StoreRef(store), tag_, wait_line_, first);
  }
}

}  // namespace sluice::detail
