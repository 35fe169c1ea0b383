// Workers of a job queue: at most two jobs of one tenant at once, and at most five of all, over all
// processes that share the store. The place of a worker that dies is free after the TTL.
#include <sluice/sluice.hpp>

#include <atomic>
#include <deque>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace sluice;
using namespace std::chrono_literals;

struct Job {
  std::string tenant;
};

class JobQueue {
 public:
  explicit JobQueue(std::deque<Job> jobs) : jobs_(std::move(jobs)) {}
  std::optional<Job> take() {
    const std::lock_guard lock(mutex_);
    if (jobs_.empty()) return {};
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

 private:
  std::mutex mutex_;
  std::deque<Job> jobs_;
};

int main() {
  const auto store = make_memory_store();  // or make_redis_store(), for a fleet
  LeaseRenewer renewer(store->clock());    // keeps the leases of long jobs alive
  const LeaseOptions lease{.ttl = 30s, .renewer = &renewer};
  const ConcurrencyLimiter per_tenant(*store, "tenant", 2, lease);
  const ConcurrencyLimiter all(*store, "workers", 5, lease);

  std::deque<Job> jobs;
  for (int i = 0; i < 30; ++i) jobs.push_back({i % 3 == 0 ? "acme" : "umbrella"});
  JobQueue queue(std::move(jobs));
  std::atomic<int> done{0};
  std::atomic<int> running{0};
  std::atomic<bool> too_many{false};

  const auto work = [&] {
    while (const std::optional<Job> job = queue.take()) {
      // Both places are taken at one instant, or none is.
      const Grants places = acquire({{per_tenant, job->tenant}, {all, "all"}}, 1min);
      if (!places) continue;  // a real worker puts the job back
      if (++running > 5) too_many = true;
      std::this_thread::sleep_for(2ms);  // the job
      --running;
      ++done;
    }  // the places are released here, also if the job throws
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < 8; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  std::cout << done << " jobs, " << (too_many ? "more than" : "at most") << " 5 at once\n";
}
