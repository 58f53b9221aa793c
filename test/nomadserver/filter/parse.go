package filter

import (
	"fmt"
	"regexp"
	"strings"
)

// Expression lets rows through; the zero value lets all through.
type Expression struct{ match matcher }

// matcher decides about a row, a tree as encoding/json reads it.
type matcher func(row any) (bool, error)

// Parse reads an expression, "" lets everything through.
func Parse(text string) (Expression, error) {
	if strings.TrimSpace(text) == "" {
		return Expression{}, nil
	}
	tokens, err := split(text)
	if err != nil {
		return Expression{}, err
	}
	p := &parser{tokens: tokens}
	m, err := p.or()
	if err != nil {
		return Expression{}, err
	}
	if p.at < len(p.tokens) {
		return Expression{}, fmt.Errorf("unexpected %q after the expression", p.tokens[p.at].text)
	}
	return Expression{match: m}, nil
}

type token struct {
	text   string
	quoted bool
}

var word = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*|^-?[0-9][0-9.]*`)

// split cuts an expression into words, quoted words and signs.
func split(text string) ([]token, error) {
	var out []token
	for rest := strings.TrimLeft(text, " \t\n"); rest != ""; rest = strings.TrimLeft(rest, " \t\n") {
		switch {
		case rest[0] == '"' || rest[0] == '`':
			end := strings.IndexByte(rest[1:], rest[0])
			if end < 0 {
				return nil, fmt.Errorf("a quote is not closed: %s", rest)
			}
			out = append(out, token{text: rest[1 : end+1], quoted: true})
			rest = rest[end+2:]
		case strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "!="):
			out = append(out, token{text: rest[:2]})
			rest = rest[2:]
		case strings.ContainsRune("()[]", rune(rest[0])):
			out = append(out, token{text: rest[:1]})
			rest = rest[1:]
		default:
			w := word.FindString(rest)
			if w == "" {
				return nil, fmt.Errorf("unexpected %q", rest)
			}
			out = append(out, token{text: w})
			rest = rest[len(w):]
		}
	}
	return out, nil
}

type parser struct {
	tokens []token
	at     int
}

// accept takes the words if they come next.
func (p *parser) accept(words ...string) bool {
	if p.at+len(words) > len(p.tokens) {
		return false
	}
	for i, w := range words {
		if t := p.tokens[p.at+i]; t.quoted || t.text != w {
			return false
		}
	}
	p.at += len(words)
	return true
}

func (p *parser) or() (matcher, error) {
	left, err := p.and()
	for err == nil && p.accept("or") {
		var right matcher
		if right, err = p.and(); err == nil {
			l := left
			left = func(row any) (bool, error) {
				if ok, err := l(row); ok || err != nil {
					return ok, err
				}
				return right(row)
			}
		}
	}
	return left, err
}

func (p *parser) and() (matcher, error) {
	left, err := p.not()
	for err == nil && p.accept("and") {
		var right matcher
		if right, err = p.not(); err == nil {
			l := left
			left = func(row any) (bool, error) {
				if ok, err := l(row); !ok || err != nil {
					return ok, err
				}
				return right(row)
			}
		}
	}
	return left, err
}

func (p *parser) not() (matcher, error) {
	if p.accept("not") {
		m, err := p.not()
		if err != nil {
			return nil, err
		}
		return opposite(m), nil
	}
	if p.accept("(") {
		m, err := p.or()
		if err == nil && !p.accept(")") {
			err = fmt.Errorf("a parenthesis is not closed")
		}
		return m, err
	}
	return p.comparison()
}

func opposite(m matcher) matcher {
	return func(row any) (bool, error) {
		ok, err := m(row)
		return !ok && err == nil, err
	}
}

// value takes the next word, whatever it is.
func (p *parser) value() (token, error) {
	if p.at >= len(p.tokens) {
		return token{}, fmt.Errorf("the expression ends where a value is expected")
	}
	p.at++
	return p.tokens[p.at-1], nil
}

// comparison is SELECTOR OPERATOR VALUE, or VALUE in SELECTOR.
func (p *parser) comparison() (matcher, error) {
	first, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.accept("in") {
		return p.membership(first)
	}
	if p.accept("not", "in") {
		m, err := p.membership(first)
		if err != nil {
			return nil, err
		}
		return opposite(m), nil
	}
	sel, err := p.selector(first)
	if err != nil {
		return nil, err
	}
	switch {
	case p.accept("is", "empty"):
		return empty(sel), nil
	case p.accept("is", "not", "empty"):
		return opposite(empty(sel)), nil
	case p.accept("=="):
		return p.with(func(v string) (matcher, error) { return equal(sel, v, false), nil })
	case p.accept("!="):
		return p.with(func(v string) (matcher, error) { return equal(sel, v, true), nil })
	case p.accept("contains"):
		return p.with(func(v string) (matcher, error) { return contains(sel, v), nil })
	case p.accept("not", "contains"):
		return p.with(func(v string) (matcher, error) { return opposite(contains(sel, v)), nil })
	case p.accept("matches"):
		return p.with(func(v string) (matcher, error) { return matches(sel, v) })
	case p.accept("not", "matches"):
		m, err := p.with(func(v string) (matcher, error) { return matches(sel, v) })
		if err != nil {
			return nil, err
		}
		return opposite(m), nil
	}
	return nil, fmt.Errorf("an operator is missing after %s", first.text)
}

func (p *parser) with(f func(string) (matcher, error)) (matcher, error) {
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	return f(v.text)
}

func (p *parser) membership(member token) (matcher, error) {
	first, err := p.value()
	if err != nil {
		return nil, err
	}
	sel, err := p.selector(first)
	if err != nil {
		return nil, err
	}
	return contains(sel, member.text), nil
}

// selector is A.B["c"].d, or "/A/B".
func (p *parser) selector(first token) ([]string, error) {
	if first.quoted && strings.HasPrefix(first.text, "/") {
		return strings.Split(first.text[1:], "/"), nil
	}
	if first.quoted {
		return nil, fmt.Errorf("%q stands where a field is expected", first.text)
	}
	out := strings.Split(first.text, ".")
	for p.accept("[") {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		if !p.accept("]") {
			return nil, fmt.Errorf("a bracket is not closed after %q", v.text)
		}
		out = append(out, v.text)
		if p.at < len(p.tokens) && !p.tokens[p.at].quoted && strings.HasPrefix(p.tokens[p.at].text, ".") {
			out = append(out, strings.Split(p.tokens[p.at].text[1:], ".")...)
			p.at++
		}
	}
	return out, nil
}
