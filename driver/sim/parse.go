package sim

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/jobfile"
)

// marker begins a line that describes behaviour.
const marker = "#SIM"

// ParseBehaviour reads the #SIM lines of a job file. The error is
// jobfile.Errors: every fault with its line and column.
func ParseBehaviour(filename string, src []byte) (Behaviour, error) {
	p := parser{b: defaults(), places: map[string]jobfile.Pos{}}
	first := jobfile.Pos{Filename: filename, Line: 1, Column: 1}
	pairs, lines := p.pairs(first, string(src))
	// The profile comes first wherever it stands, so that explicit rates win.
	slices.SortStableFunc(pairs, func(a, b pair) int {
		rank := map[string]int{"profile": -1}
		return rank[a.key] - rank[b.key]
	})
	for _, pr := range pairs {
		p.apply(pr)
	}
	p.whole(first, lines)
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b jobfile.Error) int {
			return cmp.Or(a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
		})
		return Behaviour{}, p.errs
	}
	return p.b, nil
}

type pair struct {
	key, value string
	pos        jobfile.Pos
}

type parser struct {
	places map[string]jobfile.Pos // of the keys that were given
	b      Behaviour
	errs   jobfile.Errors
}

func (p *parser) fault(pos jobfile.Pos, found, want string) {
	p.errs = append(p.errs, jobfile.Error{Pos: pos, Found: found, Want: want})
}

// pairs collects those of all #SIM lines before the first command, and counts the lines.
func (p *parser) pairs(pos jobfile.Pos, src string) (out []pair, lines int) {
	ours, word := regexp.MustCompile(`^[ \t]*#SIM([ \t]|$)`), regexp.MustCompile(`[^ \t]+`)
	header := true
	for i, line := range strings.Split(src, "\n") {
		line = strings.TrimRight(line, "\r")
		bare := strings.TrimLeft(line, " \t")
		pos.Line, pos.Column = i+1, len(line)-len(bare)+1
		switch is := ours.MatchString(line); {
		case is && !header:
			p.fault(pos, "a #SIM line after the first command", "#SIM lines stand before it")
		case is && bare != line:
			p.fault(pos, "a #SIM line that is indented", "#SIM stands at the beginning of the line")
		case is:
			lines++
			for _, at := range word.FindAllStringIndex(line, -1)[1:] {
				pos.Column = at[0] + 1
				key, value, ok := strings.Cut(line[at[0]:at[1]], "=")
				if !ok {
					p.fault(pos, "the word "+strconv.Quote(key), "want key=value")
					continue
				}
				out = append(out, pair{key, value, pos})
			}
		case bare != "" && bare[0] != '#':
			header = false
		}
	}
	return out, lines
}

// fields are those of Behaviour that are keys.
func fields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Behaviour]()), func(f reflect.StructField) bool { return f.Tag.Get("sim") == "" })
}

func (p *parser) apply(pr pair) {
	known := fields()
	i := slices.IndexFunc(known, func(f reflect.StructField) bool { return f.Tag.Get("sim") == pr.key })
	if i < 0 {
		p.fault(pr.pos, "unknown key "+strconv.Quote(pr.key), suggest(pr.key, known))
		return
	}
	if first, twice := p.places[pr.key]; twice {
		p.fault(pr.pos, "key "+strconv.Quote(pr.key)+" again", "it stands at "+first.String())
		return
	}
	p.places[pr.key] = pr.pos
	f := known[i]
	want, ok := set(reflect.ValueOf(&p.b).Elem().FieldByIndex(f.Index), f.Tag.Get("in"), f.Tag.Get("as"), pr.value)
	if pr.value == "" || !ok {
		pr.pos.Column += len(pr.key) + 1
		p.fault(pr.pos, pr.key+"="+strconv.Quote(pr.value), "want "+want)
		return
	}
	if pr.key == "profile" {
		p.b.Rates = profile(pr.value)
	}
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

// whole checks what concerns more than one key.
func (p *parser) whole(first jobfile.Pos, lines int) {
	if lines == 0 {
		if len(p.errs) == 0 {
			p.fault(first, "no #SIM line", "a simulated job says how it behaves, such as #SIM epochs=10 seconds=2")
		}
		return
	}
	for _, need := range []string{"epochs", "seconds"} {
		if _, ok := p.places[need]; !ok {
			p.fault(first, "no "+need+"=", "every simulated job needs epochs= and seconds=")
		}
	}
	for name, epoch := range map[string]int{"at": p.b.At, "hang_at": p.b.HangAt} {
		if pos, ok := p.places[name]; ok && epoch > p.b.Epochs && p.b.Epochs > 0 {
			p.fault(pos, name+"="+strconv.Itoa(epoch), "the job has "+strconv.Itoa(p.b.Epochs)+" epochs")
		}
	}
}

// suggest names the known key that was probably meant.
func suggest(word string, known []reflect.StructField) string {
	var names []string
	for _, f := range known {
		names = append(names, f.Tag.Get("sim"))
	}
	if best := jobfile.Nearest(word, names); best != "" {
		return "did you mean " + best + "?"
	}
	return "known are " + strings.Join(names, ", ")
}
