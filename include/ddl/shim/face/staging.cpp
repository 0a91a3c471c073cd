// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/message_lanes.hpp>
#include <ddl/shim/calls.hpp>
#include <ddl/shim/staging.hpp>

#include <cstring>
#include <limits>
#include <optional>

namespace ddl::shim {
namespace {

/// A buffer, or a tensor of many.
struct operand {
    const std::byte* in;
    std::byte* out;
    std::size_t count;
    bool in_device;
    bool out_device;
};

/// A call of which a buffer lies in a device, here or on another rank.
class staged_call {
public:
    staged_call(ddl_communicator& ranks, const row& how, const task& asked, const listener& heard)
        : ranks_{ranks}, how_{how}, asked_{asked}, heard_{heard}, use_{use_of(ranks, asked)},
          driver_{device_memory::here()} {
        if (asked.what == collective::allreduce_n)
            for (std::size_t i = 0; i < asked.tensors; ++i) add(asked.data[i], asked.data[i], asked.counts[i]);
        else add(use_.reads ? asked.in : nullptr, use_.writes ? asked.out : nullptr, asked.count);
        if (context_ == nullptr) driver_ = nullptr;
        ranks.ranks->drain();  // calls under way use the same memory
    }

    /// Makes room, once the context is entered.
    void prepare() {
        if (!ranks_.staged || ranks_.staged->context() != context_) {
            ranks_.staged.reset();
            ranks_.staged = std::make_unique<staging>(ranks_.ranks->memory(), driver_, context_);
        }
        room_ = ranks_.staged.get();
    }
    const device_memory* driver() const noexcept { return driver_; }
    void* context() const noexcept { return context_; }

    /// More than a chunk of a device's memory, which can be cut.
    bool wants_chunks() const noexcept {
        return context_ != nullptr && elementwise() && passing() > room_->chunk_bytes(passing());
    }

    /// Bytes of all operands.
    std::size_t passing() const noexcept { return total_ * how_.element_bytes; }

    /// Whether the ranks have done their part, whatever then became of this one's copies.
    bool has_met() const noexcept { return has_met_; }

    /// The call as it is, on copies.
    ddl_status whole() noexcept {
        task part = asked_;
        std::vector<void*> data;
        ddl_status status = or_tell([&] { fetch_whole(part, data); });
        if (status == DDL_OK) status = how_.run(ranks_.object, part, heard_);
        if (status != DDL_OK) return status;
        has_met_ = true;
        return guarded(heard_, name(), [&] { store_whole(part); });
    }

    /// All ranks have found that one of them asks for chunks, or ask themselves.
    ddl_status in_chunks(bool asks) noexcept {
        constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
        const std::int64_t form = elementwise() ? form_of_operands() : never;
        std::int64_t words[] = {form, form == never ? never : -form,
                                asks ? static_cast<std::int64_t>(room_->chunk_bytes(passing())) : 0};
        if (const ddl_status status = ranks_.ranks->agree(asks, words, heard_)) return status;
        if (words[0] != -words[1])
            return heard_(DDL_MISMATCH,
                          error(errc::mismatch, name(), ranks_.rank, -1,
                                "the ranks do not agree, and some pass device memory in chunks; make equal "
                                "calls with equal counts in the same order on every rank")
                              .what());
        return pass(static_cast<std::size_t>(words[2]));
    }

    /// After a failure: no copy runs on in memory that is the caller's again.
    void calm() noexcept {
        guarded(nobody, name(), [&] { room_->await_all(); });
    }

private:
    const char* name() const noexcept { return to_string(asked_.what); }
    bool is_root() const noexcept { return ranks_.rank == asked_.root; }
    bool broadcasts() const noexcept { return asked_.what == collective::broadcast; }
    bool elementwise() const noexcept {
        return asked_.what == collective::allreduce || asked_.what == collective::allreduce_n ||
               asked_.what == collective::reduce || broadcasts();
    }
    /// Whether the call looks at what is in its buffers, and whether it replaces that.
    bool fetches() const noexcept { return !broadcasts() || is_root(); }
    bool stores() const noexcept { return broadcasts() ? !is_root() : use_.writes; }

    void add(const void* in, void* out, std::size_t count) {
        const auto is_device = [&](const void* data) {
            if (driver_ == nullptr || data == nullptr || !driver_->holds(data)) return false;
            void* const its = driver_->context_of(data);
            if (context_ == nullptr) context_ = its;
            if (its != context_) {  // the copies follow the default stream of the first device alone
                const entered other{driver_, its};
                driver_->synchronize();
            }
            return true;
        };
        if (broadcasts()) in = out;
        operands_.push_back(
            {static_cast<const std::byte*>(in), static_cast<std::byte*>(out), count, is_device(in), is_device(out)});
        total_ += count;
    }

    /// What a copy needs to happen: if it does not, the others, who wait in the call, hear of it.
    template <class Copies>
    ddl_status or_tell(Copies copies) noexcept {
        const ddl_status status = guarded(heard_, name(), copies);
        if (status != DDL_OK) ranks_.ranks->refuse();
        return status;
    }

    void fetch_whole(task& part, std::vector<void*>& data) {
        const std::size_t each = how_.element_bytes;
        if (asked_.what == collective::allreduce_n) {
            std::size_t bytes = 0;
            for (const operand& one : operands_) bytes += whole_lines(one.count * each);
            std::byte* place = room_->room(bytes);
            for (const operand& one : operands_) {
                data.push_back(one.in_device ? place : one.out);
                if (one.in_device) room_->fetch(0, place, one.in, one.count * each);
                place += whole_lines(one.count * each);
            }
            part.data = data.data();
        } else {
            const operand& one = operands_.front();
            const bool together = one.in == one.out && (!use_.reads || use_.in == use_.out);
            const std::size_t in_bytes = use_.in * each;
            std::byte* const place = room_->room(whole_lines(in_bytes) + use_.out * each);
            part.in = one.in_device ? place : one.in;
            part.out = !one.out_device ? one.out : together ? place : place + whole_lines(in_bytes);
            if (one.in_device && fetches()) room_->fetch(0, place, one.in, (use_.reads ? use_.in : use_.out) * each);
        }
        room_->await(0);
    }
    void store_whole(const task& part) {
        const std::size_t each = how_.element_bytes;
        for (std::size_t i = 0; i < operands_.size(); ++i) {
            const operand& one = operands_[i];
            const bool many = asked_.what == collective::allreduce_n;
            if (one.out_device && stores())
                room_->store(0, one.out, many ? part.data[i] : part.out, (many ? one.count : use_.out) * each);
        }
        room_->await(0);
    }

    std::int64_t form_of_operands() const noexcept {
        std::uint64_t hash = operands_.size();
        for (const operand& one : operands_) hash = (hash ^ one.count) * 1'099'511'628'211U;
        return static_cast<std::int64_t>(hash >> 2);
    }

    /// Calls `use(operand, where in it, where in the chunk, elements)` for all that lies in a chunk.
    template <class Use>
    void each_in(std::size_t first, std::size_t length, Use use) {
        std::size_t begin = 0;
        for (const operand& one : operands_) {
            const std::size_t from = std::max(begin, first);
            const std::size_t end = std::min(begin + one.count, first + length);
            if (from < end) use(one, from - begin, from - first, end - from);
            begin += one.count;
        }
    }

    /// Chunk after chunk: while the ranks reduce one, the next ones are fetched and the last ones stored.
    ddl_status pass(std::size_t chunk_bytes) noexcept {
        const std::size_t bytes = how_.element_bytes;
        const std::size_t each = std::max<std::size_t>(1, chunk_bytes / bytes);
        const std::size_t chunks = (total_ + each - 1) / each;
        const auto slots = static_cast<std::size_t>(room_->slot_count());
        const bool in_place = context_ == nullptr && operands_.size() == 1;  // nothing is to be copied
        std::byte* room = nullptr;
        const auto length = [&](std::size_t chunk) { return std::min(each, total_ - chunk * each); };
        const auto slot = [&](std::size_t chunk) { return static_cast<int>(chunk % slots); };
        const auto place = [&](std::size_t chunk) { return room + chunk % slots * each * bytes; };
        const auto fetch = [&](std::size_t chunk) {
            if (chunk >= chunks || in_place || !fetches()) return;
            each_in(chunk * each, length(chunk),
                    [&](const operand& one, std::size_t from, std::size_t at, std::size_t n) {
                        std::byte* const to = place(chunk) + at * bytes;
                        if (one.in_device) return room_->fetch(slot(chunk), to, one.in + from * bytes, n * bytes);
                        room_->await(slot(chunk));  // what was there may be on its way yet
                        std::memcpy(to, one.in + from * bytes, n * bytes);
                    });
        };
        const auto store = [&](std::size_t chunk) {
            if (in_place || !stores()) return;
            each_in(chunk * each, length(chunk),
                    [&](const operand& one, std::size_t to, std::size_t at, std::size_t n) {
                        const std::byte* const from = place(chunk) + at * bytes;
                        if (one.out_device) room_->store(slot(chunk), one.out + to * bytes, from, n * bytes);
                        else std::memcpy(one.out + to * bytes, from, n * bytes);
                    });
        };
        ddl_status status = or_tell([&] {
            if (!in_place) room = room_->room(std::min(slots, chunks) * std::min(each, total_) * bytes);
            for (std::size_t chunk = 0; chunk + 1 < slots; ++chunk) fetch(chunk);
        });
        for (std::size_t chunk = 0; chunk < chunks && status == DDL_OK; ++chunk) {
            status = or_tell([&] {
                room_->await(slot(chunk));
                fetch(chunk + slots - 1);
            });
            if (status == DDL_OK) status = run_chunk(in_place ? nullptr : place(chunk), chunk * each, length(chunk));
            if (status != DDL_OK) return status;
            if (chunk + 1 < chunks) {
                status = or_tell([&] { store(chunk); });
                continue;
            }
            has_met_ = true;  // nobody waits any more
            status = guarded(heard_, name(), [&] { store(chunk); });
        }
        return status != DDL_OK ? status : guarded(heard_, name(), [&] { room_->await_all(); });
    }

    /// `place` is where the chunk lies; nullptr: where it lay before.
    ddl_status run_chunk(std::byte* place, std::size_t first, std::size_t length) noexcept {
        const operand& one = operands_.front();
        const std::size_t before = first * how_.element_bytes;
        task part = asked_;
        part.in = place != nullptr ? place : one.in == nullptr ? nullptr : one.in + before;
        part.out = !stores() && !broadcasts() ? nullptr : place != nullptr ? place : one.out + before;
        part.count = length;
        part.data = &part.out;
        part.counts = &part.count;
        part.tensors = 1;
        return how_.run(ranks_.object, part, heard_);
    }

    ddl_communicator& ranks_;
    const row& how_;
    const task& asked_;
    const listener& heard_;
    const buffer_use use_;
    const device_memory* driver_;
    void* context_ = nullptr;
    std::vector<operand> operands_;
    std::size_t total_ = 0;
    staging* room_ = nullptr;
    bool has_met_ = false;
};

}  // namespace

ddl_status carry_out_staged(ddl_communicator& ranks, const row& how, const task& asked, const listener& heard, bool met,
                            bool& has_met) noexcept {
    std::optional<staged_call> call;
    std::optional<entered> context;
    const bool synchronises = asked.on_device && ranks.dev_sync > 0;
    const ddl_status prepared = guarded(heard, to_string(asked.what), [&] {
        call.emplace(ranks, how, asked, heard);
        context.emplace(call->driver(), call->context());
        call->prepare();
        if (synchronises) call->driver()->synchronize();
    });
    if (prepared != DDL_OK) {
        ranks.ranks->refuse();
        return prepared;
    }
    const bool asks = !met && call->wants_chunks();
    ddl_status status = met || asks ? asked_again : call->whole();
    if (status == asked_again) status = call->in_chunks(asks);
    has_met = call->has_met();
    if (status != DDL_OK) call->calm();
    if (status == DDL_OK && synchronises && ranks.dev_sync > 1)
        status = guarded(heard, to_string(asked.what), [&] { call->driver()->synchronize(); });
    return status;
}

}  // namespace ddl::shim
