// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/extents.hpp>
#include <ddl/text.hpp>

#include <algorithm>
#include <charconv>
#include <climits>
#include <iterator>
#include <string_view>

namespace ddl::shim {

/// What DDL_OPTIONS says: `-mode <letter>:<extents> -dump_iter N -dev_sync 0..2 -rebind_iter N -dbg_level 0..2`.
struct options {
    char mode = ' ';                                 // b n r m c p; blank: no mode was given
    int extents[by_extents::levels] = {1, 1, 1, 1};  // ranks of each level, innermost first
    int levels = 0;                                  // that were given; 0: one level of all ranks
    int dump_iter = 0;                               // print the network's performance every so many calls
    int dev_sync = 0;                                // synchronise the device: not, before, before and after a call
    int rebind_iter = 0;                             // look for slow ranks every so many calls
    int dbg_level = 0;

    /// Levels with more than one rank.
    int depth() const noexcept {
        int deep = 0;
        for (const int extent : extents) deep += extent > 1;
        return deep;
    }
};

/// Reads options, for `ranks` ranks. False if they make no sense, with the reason in `why`.
class options_reader {
public:
    options_reader(int ranks, text& why) noexcept : ranks_{ranks}, why_{why} {}

    bool read(std::string_view words, options& result) noexcept {
        for (std::string_view name = next(words); !name.empty(); name = next(words)) {
            if (std::find(std::begin(names), std::end(names), name) == std::end(names))
                return complain("no option of DDL is called", name);
            const std::string_view value = next(words);
            if (value.empty()) return complain("the option has no value", name);
            const bool read = name == "-mode"          ? mode(value, result)
                              : name == "-dump_iter"   ? number(name, value, INT_MAX, result.dump_iter)
                              : name == "-dev_sync"    ? number(name, value, 2, result.dev_sync)
                              : name == "-rebind_iter" ? number(name, value, INT_MAX, result.rebind_iter)
                                                       : number(name, value, 2, result.dbg_level);
            if (!read) return false;
        }
        return result.levels == 0 || fits(result);
    }

private:
    static constexpr std::string_view names[] = {"-mode", "-dump_iter", "-dev_sync", "-rebind_iter", "-dbg_level"};
    static constexpr std::string_view blanks = " \t\n";

    /// Takes the next word off the front.
    static std::string_view next(std::string_view& words) noexcept {
        const std::size_t begin = words.find_first_not_of(blanks);
        if (begin == std::string_view::npos) return words = {};
        words.remove_prefix(begin);
        const std::string_view word = words.substr(0, words.find_first_of(blanks));
        words.remove_prefix(word.size());
        return word;
    }

    bool complain(const char* what, std::string_view about) noexcept {
        why_.append("%s: %.*s", what, static_cast<int>(about.size()), about.data());
        return false;
    }

    static bool parsed(std::string_view word, int least, int most, int& number) noexcept {
        const auto [rest, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
        return failed == std::errc{} && rest == word.data() + word.size() && least <= number && number <= most;
    }
    bool number(std::string_view name, std::string_view value, int most, int& result) noexcept {
        if (parsed(value, 0, most, result)) return true;
        why_.append("%.*s takes a number from 0 to %d, not", static_cast<int>(name.size()), name.data(), most);
        return complain("", value);
    }

    /// `b:4x2`, `4x2` for the ring, `p` for one level of all ranks.
    bool mode(std::string_view value, options& result) noexcept {
        constexpr std::string_view letters = "bnrmcp";
        const bool lettered = value.front() < '0' || value.front() > '9';
        if (lettered && letters.find(value.front()) == std::string_view::npos)
            return complain("the mode begins with one letter of bnrmcp, not", value);
        result.mode = lettered ? value.front() : 'r';
        last_mode_ = value;
        result.levels = 0;  // what an earlier mode said
        std::fill_n(result.extents, by_extents::levels, 1);
        std::string_view extents = value.substr(lettered ? 1 : 0);
        if (lettered && extents.empty()) return true;
        if (lettered && extents.front() != ':')
            return complain("the mode is a letter, a colon and extents, as in b:4x2x3, not", value);
        if (lettered) extents.remove_prefix(1);
        return read_extents(extents, value, result);
    }

    bool read_extents(std::string_view extents, std::string_view value, options& result) noexcept {
        for (;; extents.remove_prefix(1)) {
            const std::string_view extent = extents.substr(0, extents.find('x'));
            if (result.levels == by_extents::levels || !parsed(extent, 1, INT_MAX, result.extents[result.levels++]))
                return complain("the mode takes one to four numbers of ranks, as in b:4x2x3, not", value);
            extents.remove_prefix(extent.size());
            if (extents.empty()) return true;
        }
    }

    bool fits(const options& result) noexcept {
        long long product = 1;
        for (const int extent : result.extents) product = product > INT_MAX ? product : product * extent;
        if (product == ranks_) return true;
        why_.append("invalid dim size=%lld, but there are %d ranks", product, ranks_);
        return complain("; make the product of the extents that number", last_mode_);
    }

    int ranks_;
    std::string_view last_mode_;
    text& why_;
};

/// The schedule of reductions that a mode stands for, as the libraries name it; "tuned" where the best is left to ddl. `on_nodes`:
/// the innermost groups are the nodes of the machine.
inline const char* schedule_of_mode(const options& given, bool on_nodes) noexcept {
    switch (given.mode) {
        case 'b':
        case 'n': return given.depth() < 2 ? "tuned" : on_nodes ? "enhanced_on_nodes" : "enhanced";
        case 'r': return on_nodes ? "rings_on_nodes" : "rings";
        case 'm':
        case 'c': return on_nodes ? "halvings_on_nodes" : "halvings";
        default: return "tuned";
    }
}

}  // namespace ddl::shim
