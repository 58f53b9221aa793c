package sim

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// marker begins a line that describes behaviour.
const marker = "#SIM"

type pair struct {
	line       int
	key, value string
}

// ParseBehaviour reads the #SIM lines of a job file. Its error has every fault with its line.
func ParseBehaviour(filename string, src []byte) (Behaviour, error) {
	var errs []error
	fault := func(line int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s:%d: %s", filename, line, fmt.Sprintf(format, args...)))
	}
	var pairs []pair
	given := map[string]bool{}
	header := true
	for i, line := range strings.Split(string(src), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] != marker:
			header = header && words[0][0] == '#'
		case !header || line[0] != '#':
			fault(i+1, "#SIM stands at the beginning of a line before the first command")
		default:
			for _, word := range words[1:] {
				key, value, ok := strings.Cut(word, "=")
				if !ok || given[key] {
					fault(i+1, "%q: want key=value, and each key once", word)
					continue
				}
				given[key] = true
				pairs = append(pairs, pair{i + 1, key, value})
			}
		}
	}
	// The profile comes first wherever it is, so that explicit rates win.
	if i := slices.IndexFunc(pairs, func(p pair) bool { return p.key == "profile" }); i > 0 {
		pairs[0], pairs[i] = pairs[i], pairs[0]
	}
	b := defaults()
	for _, p := range pairs {
		i := slices.IndexFunc(fields(), func(f reflect.StructField) bool { return f.Tag.Get("sim") == p.key })
		if i < 0 {
			fault(p.line, "unknown key %q", p.key)
			continue
		}
		f := fields()[i]
		want, ok := set(reflect.ValueOf(&b).Elem().FieldByIndex(f.Index), f.Tag.Get("in"), f.Tag.Get("as"), p.value)
		switch {
		case p.value == "" || !ok:
			fault(p.line, "%s=%q; want %s", p.key, p.value, want)
		case p.key == "profile":
			b.Rates = profile(p.value)
		case (p.key == "at" || p.key == "hang_at") && max(b.At, b.HangAt) > b.Epochs && b.Epochs > 0:
			fault(p.line, "%s=%s; the job has %d epochs", p.key, p.value, b.Epochs)
		}
	}
	if !given["epochs"] || !given["seconds"] {
		fault(1, "every simulated job says how it behaves, such as #SIM epochs=10 seconds=2")
	}
	if err := errors.Join(errs...); err != nil {
		return Behaviour{}, err
	}
	return b, nil
}

// fields are those of Behaviour that are keys.
func fields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Behaviour]()), func(f reflect.StructField) bool { return f.Tag.Get("sim") == "" })
}

// set reads a value, and says what would be allowed.
func set(field reflect.Value, in, as, text string) (want string, ok bool) {
	var err error
	var low, high float64
	_, _ = fmt.Sscanf(in, "%g to %g", &low, &high) // a field without bounds has none
	switch at := field.Addr().Interface().(type) {
	case *bool:
		*at = text == "true"
		return "true or false", *at || text == "false"
	case *time.Duration:
		*at, err = time.ParseDuration(text)
		return "a duration from 0s to 720h, such as 5s or 1.5m", err == nil && *at >= 0 && *at <= maxEpoch
	case *int:
		if strings.HasSuffix(in, "none") && text == "none" {
			*at = 0
			return "", true
		}
		*at, err = strconv.Atoi(text)
		return "a whole number from " + in, err == nil && float64(*at) >= low && float64(*at) <= high
	case *float64:
		*at, err = strconv.ParseFloat(text, 64)
		return "a number from " + in, err == nil && !math.IsNaN(*at) && *at >= low && *at <= high && !strings.ContainsAny(text, "xXpP_")
	case *int64:
		if as == "bytes" {
			*at, ok = amount(text)
			return "an amount of memory up to 64TiB, such as 512MiB or 2GiB", ok
		}
		*at, err = strconv.ParseInt(text, 10, 64)
		return "a whole number", err == nil
	case *[]Span:
		*at, ok = spans(text)
		return "epochs such as 3 or 3-5 or 3-5,8", ok
	case *string:
		*at = text
		switch as {
		case "variable":
			return "the name of an environment variable", regexp.MustCompile(`^[A-Za-z_]\w*$`).MatchString(text)
		case "word":
			return "a word of letters, digits, dots, dashes and underscores", regexp.MustCompile(`^[\w.-]+$`).MatchString(text)
		}
		return "one of " + as, slices.Contains(strings.Split(as, ", "), text)
	}
	return "", false
}

func amount(text string) (int64, bool) {
	digits, factor := text, int64(1)
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			digits, factor = rest, 1<<(10*(i+1))
		}
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	return v * factor, err == nil && v >= 0 && v <= 64<<40/factor
}

func spans(text string) (out []Span, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, is := strings.Cut(part, "-")
		if !is {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first < 1 || last < first {
			return nil, false
		}
		out = append(out, Span{first, last})
	}
	return out, true
}
