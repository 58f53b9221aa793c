package sim

import (
	"slices"
	"strconv"
	"strings"

	"pitchpipe/driver/jobfile"
)

// marker begins a line that describes behaviour.
const marker = "#SIM"

// ParseBehaviour reads the #SIM lines of a job file. The error is
// jobfile.Errors: every fault with its line and column.
func ParseBehaviour(filename string, src []byte) (Behaviour, error) {
	p := parser{filename: filename, b: defaults(), places: make(map[string]jobfile.Pos)}
	p.lines(string(src))
	p.apply()
	p.whole()
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b jobfile.Error) int {
			if a.Pos.Line != b.Pos.Line {
				return a.Pos.Line - b.Pos.Line
			}
			return a.Pos.Column - b.Pos.Column
		})
		return Behaviour{}, p.errs
	}
	return p.b, nil
}

// String prints the behaviour as one #SIM line that is read back as the same
// behaviour.
func (b Behaviour) String() string {
	var line strings.Builder
	line.WriteString(marker)
	for _, k := range keys() {
		if text := k.get(&b); text != "" {
			line.WriteString(" " + k.name + "=" + text)
		}
	}
	return line.String()
}

type pair struct {
	key, value       string
	keyPos, valuePos jobfile.Pos
}

type parser struct {
	filename string
	pairs    []pair
	places   map[string]jobfile.Pos // of the keys that were given
	seen     int                    // #SIM lines
	b        Behaviour
	errs     jobfile.Errors
}

func (p *parser) fault(pos jobfile.Pos, found, want string) {
	p.errs = append(p.errs, jobfile.Error{Pos: pos, Found: found, Want: want})
}

// lines collects the pairs of all #SIM lines before the first command.
func (p *parser) lines(src string) {
	header := true
	n := 0
	for line := range strings.Lines(src) {
		n++
		line = strings.TrimRight(line, "\r\n")
		bare := strings.TrimLeft(line, " \t")
		rest, ours := strings.CutPrefix(bare, marker)
		if ours && rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			ours = false // a longer word
		}
		pos := jobfile.Pos{Filename: p.filename, Line: n, Column: len(line) - len(bare) + 1}
		switch {
		case ours && !header:
			p.fault(pos, "a #SIM line after the first command", "#SIM lines stand before it")
		case ours && bare != line:
			p.fault(pos, "a #SIM line that is indented", "#SIM stands at the beginning of the line")
		case ours:
			p.seen++
			p.line(n, line)
		case bare != "" && bare[0] != '#':
			header = false
		}
	}
}

func (p *parser) line(n int, line string) {
	for at := len(marker); at < len(line); {
		if line[at] == ' ' || line[at] == '\t' {
			at++
			continue
		}
		end := at
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		pos := jobfile.Pos{Filename: p.filename, Line: n, Column: at + 1}
		name, value, ok := strings.Cut(line[at:end], "=")
		if !ok {
			p.fault(pos, "the word "+strconv.Quote(name), "want key=value")
		} else {
			valuePos := pos
			valuePos.Column += len(name) + 1
			p.pairs = append(p.pairs, pair{key: name, value: value, keyPos: pos, valuePos: valuePos})
		}
		at = end
	}
}

// apply sets the fields. The profile comes first wherever it stands, so that
// explicit rates win.
func (p *parser) apply() {
	known := keys()
	slices.SortStableFunc(p.pairs, func(a, b pair) int {
		switch {
		case a.key == "profile" && b.key != "profile":
			return -1
		case b.key == "profile" && a.key != "profile":
			return 1
		}
		return 0
	})
	for _, pr := range p.pairs {
		i := slices.IndexFunc(known, func(k key) bool { return k.name == pr.key })
		if i < 0 {
			p.fault(pr.keyPos, "unknown key "+strconv.Quote(pr.key), suggest(pr.key, known))
			continue
		}
		if first, twice := p.places[pr.key]; twice {
			p.fault(pr.keyPos, "key "+strconv.Quote(pr.key)+" again", "it stands at "+first.String())
			continue
		}
		p.places[pr.key] = pr.keyPos
		if pr.value == "" || known[i].set(&p.b, pr.value) != nil {
			p.fault(pr.valuePos, pr.key+"="+strconv.Quote(pr.value), known[i].want)
			continue
		}
		if pr.key == "profile" {
			p.b.Rates = mustProfile(pr.value)
		}
	}
}

// whole checks what concerns more than one key.
func (p *parser) whole() {
	first := jobfile.Pos{Filename: p.filename, Line: 1, Column: 1}
	if p.seen == 0 {
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
	for _, k := range []struct {
		name  string
		epoch int
	}{{"at", p.b.At}, {"hang_at", p.b.HangAt}} {
		if pos, ok := p.places[k.name]; ok && k.epoch > p.b.Epochs && p.b.Epochs > 0 {
			p.fault(pos, k.name+"="+strconv.Itoa(k.epoch), "the job has "+strconv.Itoa(p.b.Epochs)+" epochs")
		}
	}
}

// suggest names the known key that was probably meant.
func suggest(word string, known []key) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	if best := jobfile.Nearest(word, names); best != "" {
		return "did you mean " + best + "?"
	}
	return "known are " + strings.Join(names, ", ")
}
