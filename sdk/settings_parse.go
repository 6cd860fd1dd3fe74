package sdk

import (
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/retinue-sched/retinue/hostabi"
)

// ParseSettings reads a JSON object of strings, numbers, true and false; nothing at all is an empty one. It is
// stricter than JSON: no key twice, no null, no list or object inside. encoding/json would nearly double a module.
func ParseSettings(text []byte) (Settings, error) {
	if len(text) > hostabi.MaxSettingsSize {
		return Settings{}, errors.New("settings: they have " + strconv.Itoa(len(text)) + " bytes, more than the limit of " +
			strconv.Itoa(hostabi.MaxSettingsSize))
	}
	p := settingsParser{text: string(text)}
	p.space()
	if p.at == len(p.text) {
		return Settings{}, nil
	}
	s := p.object()
	p.space()
	if p.err == nil && p.at != len(p.text) {
		p.fail("something follows the object")
	}
	if p.err != nil {
		return Settings{}, p.err
	}
	return s, nil
}

// settingsParser stands at a byte of the text. Once err is set, nothing moves it on.
type settingsParser struct {
	text string
	at   int
	err  error
}

// object reads the whole object.
func (p *settingsParser) object() Settings {
	var s Settings
	p.expect('{', "an object starts with {")
	p.space()
	if p.skip('}') {
		return s
	}
	for p.err == nil {
		s.entries = p.member(s.entries)
		p.space()
		if p.skip('}') {
			break
		}
		p.expect(',', "after a value comes , or }")
	}
	return s
}

// member reads a key and its value and appends them to entries.
func (p *settingsParser) member(entries []setting) []setting {
	p.space()
	key := p.quoted("a key stands in double quotes")
	for _, e := range entries {
		if e.key == key {
			p.fail("key " + strconv.Quote(key) + " is there twice")
		}
	}
	p.space()
	p.expect(':', "after a key comes :")
	p.space()
	s := p.value()
	s.key = key
	return append(entries, s)
}

// value reads a string, a number, true or false.
func (p *settingsParser) value() setting {
	switch {
	case p.peek() == '"':
		return setting{kind: kindString, text: p.quoted("")}
	case p.peek() == '-' || digit(p.peek()):
		return setting{kind: kindNumber, text: p.number()}
	}
	for _, word := range []string{"true", "false"} {
		if len(p.text)-p.at >= len(word) && p.text[p.at:p.at+len(word)] == word && p.err == nil {
			p.at += len(word)
			return setting{kind: kindBool, text: word}
		}
	}
	p.fail("a value is a string, a number, true or false")
	return setting{}
}

// number reads a number as JSON writes them and returns it as it is written.
func (p *settingsParser) number() string {
	from := p.at
	p.skip('-')
	if !p.skip('0') {
		p.digits()
	}
	if p.skip('.') {
		p.digits()
	}
	if p.skip('e') || p.skip('E') {
		if !p.skip('+') {
			p.skip('-')
		}
		p.digits()
	}
	return p.text[from:p.at]
}

// digits reads at least one digit.
func (p *settingsParser) digits() {
	if !digit(p.peek()) {
		p.fail("a digit is missing")
	}
	for p.err == nil && digit(p.peek()) {
		p.at++
	}
}

// quoted reads a string and returns its content.
func (p *settingsParser) quoted(otherwise string) string {
	p.expect('"', otherwise)
	var content []byte
	for p.err == nil {
		c := p.peek()
		switch {
		case p.at == len(p.text):
			p.fail("a string has no end")
		case c == '"':
			p.at++
			if !utf8.Valid(content) {
				p.fail("the string before is not UTF-8")
			}
			return string(content)
		case c == '\\':
			p.at++
			content = p.escape(content)
		case c < ' ':
			p.fail("a control character in a string is written \\u00XX")
		default:
			content = append(content, c)
			p.at++
		}
	}
	return ""
}

// escape reads what follows a backslash and appends what it stands for.
func (p *settingsParser) escape(content []byte) []byte {
	const names, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	c := p.peek()
	for i := range len(names) {
		if c == names[i] && p.at < len(p.text) {
			p.at++
			return append(content, meanings[i])
		}
	}
	if !p.skip('u') {
		p.fail("there is no such escape")
		return content
	}
	r := p.hex()
	if utf16.IsSurrogate(r) {
		low := rune(0)
		if p.skip('\\') && p.skip('u') {
			low = p.hex()
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			p.fail("half of a surrogate pair")
		}
	}
	return utf8.AppendRune(content, r)
}

// hex reads four hexadecimal digits.
func (p *settingsParser) hex() rune {
	if len(p.text)-p.at < 4 {
		p.fail("four hexadecimal digits are missing")
		return 0
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+4], 16, 16)
	if err != nil {
		p.fail("four hexadecimal digits are missing")
		return 0
	}
	p.at += 4
	return rune(n)
}

// peek returns the byte at hand, 0 at the end.
func (p *settingsParser) peek() byte {
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// skip moves on if c is at hand.
func (p *settingsParser) skip(c byte) bool {
	if p.err != nil || p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

// expect moves on if c is at hand; otherwise says what is right.
func (p *settingsParser) expect(c byte, otherwise string) {
	if !p.skip(c) {
		p.fail(otherwise)
	}
}

// space moves on to what is not white space.
func (p *settingsParser) space() {
	for p.skip(' ') || p.skip('\n') || p.skip('\t') || p.skip('\r') {
	}
}

// fail says what is wrong at hand, unless something was before.
func (p *settingsParser) fail(what string) {
	if p.err == nil {
		p.err = errors.New("settings: byte " + strconv.Itoa(p.at) + ": " + what)
	}
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
