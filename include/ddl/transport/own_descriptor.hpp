// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/descriptor.hpp>

#include <memory>
#include <mutex>
#include <pthread.h>
#include <type_traits>
#include <vector>

namespace ddl {

/// A file descriptor that a process made by fork does not keep: for what lasts as long as anybody has it open, such as a lock or a
/// name, and is to end with this process.
///
/// A mapping of the file is kept by the child, and what was opened with it: map what another descriptor has opened.
class own_descriptor {
public:
    own_descriptor() noexcept = default;
    explicit own_descriptor(descriptor&& file) : file_{std::make_unique<descriptor>(std::move(file))} {
        const std::lock_guard lock{all().mutex};
        all().open.push_back(file_.get());
    }
    /// What `open()` gives: no fork comes before it is known as this process's own.
    template <class Open>
        requires std::is_same_v<std::invoke_result_t<const Open&>, descriptor>
    explicit own_descriptor(const Open& open) {
        const std::lock_guard lock{all().mutex};
        file_ = std::make_unique<descriptor>(open());
        all().open.push_back(file_.get());
    }
    own_descriptor(own_descriptor&&) noexcept = default;
    own_descriptor& operator=(own_descriptor&&) = delete;
    ~own_descriptor() {
        if (!file_) return;
        const std::lock_guard lock{all().mutex};
        std::erase(all().open, file_.get());
        file_.reset();  // before the next fork
    }

    /// -1 if there is none, as in a child.
    int number() const noexcept { return file_ ? file_->number() : -1; }

private:
    struct of_process {
        std::mutex mutex;  // no fork comes while a list is changed
        std::vector<descriptor*> open;
        of_process() {
            (void)::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                                   [] {
                                       for (descriptor* const each : all().open) each->close();
                                       all().open.clear();
                                       all().mutex.unlock();
                                   });
        }
    };
    static of_process& all() {
        static of_process& one = *new of_process;  // never goes: communicators may be static
        return one;
    }

    std::unique_ptr<descriptor> file_;
};

}  // namespace ddl
