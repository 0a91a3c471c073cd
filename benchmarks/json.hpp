// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

/// A JSON value in text. Numbers are written so that they read back the same; those that JSON lacks become `null`.
struct json {
    std::string text;

    explicit json(std::nullptr_t) : text{"null"} {}
    explicit json(std::string_view words) : text{quoted(words)} {}
    template <class Number>
        requires std::is_arithmetic_v<Number>
    explicit json(Number number) : text{"null"} {
        if constexpr (std::is_same_v<Number, bool>) {
            text = number ? "true" : "false";
        } else {
            if constexpr (std::is_floating_point_v<Number>)
                if (!std::isfinite(number)) return;
            char digits[64];
            text.assign(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
        }
    }

    static std::string quoted(std::string_view words) {
        std::string text = "\"";
        for (const char each : words) {
            char escaped[8];
            if (each == '"' || each == '\\') text += '\\';
            if (static_cast<unsigned char>(each) >= 0x20) {
                text += each;
            } else {
                std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(each));
                text += escaped;
            }
        }
        return text + '"';
    }
};

/// `{"name": value, ...}`, in the order of `add`.
class json_object {
public:
    json_object& add(std::string_view name, const json& value) {
        members_ += (members_.empty() ? "" : ", ") + json::quoted(name) + ": " + value.text;
        return *this;
    }
    template <class Value>
        requires(!std::is_same_v<Value, json>)
    json_object& add(std::string_view name, const Value& value) {
        return add(name, json{value});
    }
    json value() const {
        json whole{nullptr};
        whole.text = "{" + members_ + "}";
        return whole;
    }

private:
    std::string members_;
};

/// `[value, ...]`, a value a line.
class json_array {
public:
    json_array& add(const json& value) {
        values_ += (values_.empty() ? "\n  " : ",\n  ") + value.text;
        return *this;
    }
    json value() const {
        json whole{nullptr};
        whole.text = "[" + values_ + "]";
        return whole;
    }

private:
    std::string values_;
};
