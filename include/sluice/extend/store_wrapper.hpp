// StoreWrapper: a store in front of another one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "sluice/extend/subscription.hpp"
#include "sluice/store.hpp"
#include "sluice/store_handle.hpp"

namespace sluice {

/// The base of a store that passes calls on to another one, and counts, delays or refuses some.
/// Everything goes to the inner store, unless a subclass overrides it. decide_one() and
/// execute_batch() call execute(), as those of every Store do: who overrides it sees each call.
///
///     class CountingStore final : public StoreWrapper {
///      public:
///       using StoreWrapper::StoreWrapper;
///       void execute(const Plan& plan, Completion done) noexcept override {
///         ++calls;
///         StoreWrapper::execute(plan, std::move(done));
///       }
///       std::atomic<std::uint64_t> calls{0};
///     };
///
/// A subclass that answers later, itself, calls end() in its destructor, and fails what is pending.
/// One in front of another of its own class takes that as a `Store&`, since stores are not copied.
/// Costs a virtual call. Thread-safe as far as the inner store is. REQUIRES: an inner store that is
/// not owned (StoreHandle) outlives it.
class StoreWrapper : public Store {
 public:
  explicit StoreWrapper(const StoreHandle& inner) : inner_(inner) {}
  /// If it owns the inner store, calls that are pending there end now, and call nothing here.
  ~StoreWrapper() override { end(); }

  void execute(const Plan& plan, Completion done) noexcept override {
    inner().execute(plan, std::move(done));
  }
  [[nodiscard]] Clock& clock() noexcept override { return inner().clock(); }
  /// False for a subclass with a clock of its own.
  [[nodiscard]] bool stamps_by_clock() const noexcept override {
    return &const_cast<StoreWrapper&>(*this).clock() == &inner().clock() &&
           inner().stamps_by_clock();
  }
  [[nodiscard]] bool keeps_order() const noexcept override {
    return !stamps_by_clock() && (inner().keeps_order() || inner().stamps_by_clock());
  }
  void bind(const Key& key, Binding& binding) noexcept override { inner().bind(key, binding); }
  void notify(const Key& key) noexcept override { inner().notify(key); }
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(
      const Key& key, std::function<void()> seen) noexcept override {
    return inner().subscribe(key, std::move(seen));
  }
  [[nodiscard]] std::shared_ptr<const std::string> reason_of(
      const std::error_code& error) const noexcept override {
    return inner().reason_of(error);
  }
  [[nodiscard]] StorePart part_of(const Key& key) const noexcept override {
    return inner().part_of(key);
  }
  [[nodiscard]] bool may_block() const noexcept override { return inner().may_block(); }
  [[nodiscard]] Observer* observer() const noexcept override { return inner().observer(); }

 protected:
  [[nodiscard]] Store& inner() const noexcept { return *inner_; }

 private:
  StoreHandle inner_;
};

}  // namespace sluice
