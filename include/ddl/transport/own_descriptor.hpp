// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/descriptor.hpp>

#include <cstddef>
#include <mutex>
#include <new>
#include <pthread.h>
#include <type_traits>
#include <utility>

namespace ddl {

/// A file descriptor that a process made by fork does not keep: for what lasts as long as anybody has it open, such as a lock or a
/// name, and is to end with this process. A value that moves, and takes no memory.
///
/// A mapping of the file is kept by the child, and what was opened with it: map what another descriptor has opened.
class own_descriptor {
public:
    own_descriptor() noexcept = default;
    /// What `open()` gives, and leaves in `errno`: no fork comes before it is known as this process's own. It must not block.
    template <class Open>
        requires std::is_same_v<std::invoke_result_t<const Open&>, descriptor>
    explicit own_descriptor(const Open& open) {
        const std::lock_guard lock{all().mutex};
        file_ = open();
        list();
    }
    own_descriptor(own_descriptor&& from) noexcept { *this = std::move(from); }
    own_descriptor& operator=(own_descriptor&& from) noexcept {
        const std::lock_guard lock{all().mutex};
        std::swap(file_, from.file_);
        list();
        from.list();
        return *this;
    }
    ~own_descriptor() { close(); }

    /// False, and -1, if there is none, as in a child.
    explicit operator bool() const noexcept { return static_cast<bool>(file_); }
    int number() const noexcept { return file_.number(); }
    void close() noexcept {
        if (!file_) return;
        const std::lock_guard lock{all().mutex};
        file_.close();  // before the next fork
        list();
    }

private:
    struct of_process {
        std::mutex mutex;  // no fork comes while the list is changed
        own_descriptor* first = nullptr;
        of_process() {
            (void)::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                                   [] {
                                       while (own_descriptor* const each = all().first) {
                                           each->file_.close();
                                           each->list();
                                       }
                                       all().mutex.unlock();
                                   });
        }
    };
    static of_process& all() noexcept {
        alignas(of_process) static std::byte place[sizeof(of_process)];
        static of_process& one = *new (place) of_process;  // never goes: communicators may be static
        return one;
    }

    /// Puts this one on the list if it has a file, else takes it off. The mutex is held.
    void list() noexcept {
        if (here_ != nullptr) {
            *here_ = after_;
            if (after_ != nullptr) after_->here_ = here_;
            here_ = nullptr;
        }
        if (!file_) return;
        here_ = &all().first;
        after_ = std::exchange(all().first, this);
        if (after_ != nullptr) after_->here_ = &after_;
    }

    descriptor file_;
    own_descriptor* after_ = nullptr;
    own_descriptor** here_ = nullptr;  // what points to this one, while it is on the list
};

}  // namespace ddl
