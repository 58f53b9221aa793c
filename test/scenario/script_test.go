package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// command is one line of a script.
type command struct {
	line  int
	at    time.Duration // since the story's beginning; negative = at once
	after time.Duration
	verb  string
	words []string // the rest
}

var errScript = errors.New("script")

// verbs lists the commands and how many words each needs at least and at most.
func verbs() map[string][2]int {
	return map[string][2]int{
		"submit": {3, 9}, "wait": {1, 3}, "off": {1, 1}, "stop": {1, 1}, "pause": {1, 2}, "resume": {1, 2},
		"restart": {1, 1}, "crash": {3, 4}, "fault": {4, 5}, "break": {1, 1}, "search": {3, 3},
	}
}

// parseScript reads a script.
func parseScript(text string) ([]command, error) {
	var out []command
	var faults []error
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		c, err := parseCommand(words)
		if err != nil {
			faults = append(faults, fmt.Errorf("%w, line %d: %w", errScript, i+1, err))
			continue
		}
		c.line = i + 1
		out = append(out, c)
	}
	return out, errors.Join(faults...)
}

func parseCommand(words []string) (command, error) {
	c := command{at: -1}
	if words[0] == "at" || words[0] == "after" {
		if len(words) < 3 {
			return c, fmt.Errorf("%q wants a time and a command", words[0])
		}
		d, err := time.ParseDuration(words[1])
		if err != nil || d < 0 {
			return c, fmt.Errorf("%q is no time such as 30s", words[1])
		}
		if words[0] == "at" {
			c.at = d
		} else {
			c.after = d
		}
		words = words[2:]
	}
	c.verb, c.words = words[0], words[1:]
	bounds, ok := verbs()[c.verb]
	if !ok {
		return c, fmt.Errorf("no command %q", c.verb)
	}
	if len(c.words) < bounds[0] || len(c.words) > bounds[1] {
		return c, fmt.Errorf("%q wants %d to %d words, found %d", c.verb, bounds[0], bounds[1], len(c.words))
	}
	return c, c.check()
}

// check judges what can be judged before the story begins.
func (c command) check() error {
	switch c.verb {
	case "submit":
		_, err := parseSubmission(c.words)
		return err
	case "wait":
		if len(c.words) > 1 && (len(c.words) != 3 || c.words[1] != "until") {
			return errors.New("want wait JOB until PHASE")
		}
	case "restart":
		if c.words[0] != "controller" {
			return fmt.Errorf("cannot restart %q", c.words[0])
		}
	case "crash":
		if c.words[0] != "controller" || c.words[1] != "at" {
			return errors.New("want crash controller at PHASE [STEP]")
		}
		kinds := []driver.StepKind{
			driver.StepRunning, driver.StepCheckpointing, driver.StepStopped, driver.StepChanged, driver.StepStarted,
			driver.StepFinished, driver.StepSuperseded, driver.StepNoRoom, driver.StepAbandoned,
		}
		if len(c.words) == 4 && !slices.Contains(kinds, driver.StepKind(c.words[3])) {
			return fmt.Errorf("no step %q", c.words[3])
		}
	case "fault":
		_, err := parseFault(c.words)
		return err
	}
	return nil
}

// submission is what a submit line says.
type submission struct {
	file, job, user        string
	env                    map[string]string
	off, directly, refused bool
}

func parseSubmission(words []string) (submission, error) {
	s := submission{file: words[0], job: words[2], user: "alice", env: map[string]string{}}
	if words[1] != "as" {
		return s, errors.New("want submit FILE as JOB")
	}
	for rest := words[3:]; len(rest) > 0; {
		switch {
		case rest[0] == "off":
			s.off = true
		case rest[0] == "directly":
			s.directly = true
		case rest[0] == "refused":
			s.refused = true
		case rest[0] == "by" && len(rest) > 1:
			s.user, rest = rest[1], rest[1:]
		case rest[0] == "env" && len(rest) > 1:
			name, value, ok := strings.Cut(rest[1], "=")
			if !ok {
				return s, fmt.Errorf("%q is no NAME=VALUE", rest[1])
			}
			s.env[name], rest = value, rest[1:]
		default:
			return s, fmt.Errorf("submit does not know %q", rest[0])
		}
		rest = rest[1:]
	}
	return s, nil
}

// fault is what a fault line says.
type fault struct {
	op, job string // job as the story names it, empty = any
	err     error
	lasts   time.Duration
}

func parseFault(words []string) (fault, error) {
	f := fault{op: words[0]}
	ops := []string{
		sim.OpStart, sim.OpAdvance, sim.OpCheck, sim.OpWatch, sim.OpEvent, sim.OpGet, sim.OpList, sim.OpStop,
		sim.OpWindow, sim.OpNode, sim.OpOutlook, "any",
	}
	if !slices.Contains(ops, f.op) {
		return f, fmt.Errorf("no operation %q", f.op)
	}
	rest := words[1:]
	if len(rest) == 4 {
		f.job, rest = rest[0], rest[1:]
	}
	kinds := map[string]error{
		"transient": driver.ErrTransient, "unknown": driver.ErrUnknown, "not-taken": sim.ErrNotTaken,
		"denied": driver.ErrDenied, "unsupported": driver.ErrUnsupported,
	}
	var ok bool
	if f.err, ok = kinds[rest[0]]; !ok {
		return f, fmt.Errorf("no kind of fault %q", rest[0])
	}
	if len(rest) != 3 || rest[1] != "for" {
		return f, errors.New("want fault OP [JOB] KIND for DURATION")
	}
	var err error
	f.lasts, err = time.ParseDuration(rest[2])
	return f, err
}
