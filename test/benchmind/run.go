package benchmind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/test/measure"
)

// Options say what is run and where.
type Options struct {
	Program string   // pitchpipe
	Data    string   // the folder of recorded runs
	Own     string   // a folder that scripts/regret recorded into; empty: none
	Out     string   // the folder that the report, plots and JSON are written into
	Only    []string // names of the evaluations that are run; empty: all
	Trace   io.Writer
}

// ErrData means that there are no recorded runs.
var ErrData = errors.New("no recorded runs")

// Run runs the evaluations one after the other; each uses all cores if it can.
// One that fails does not stop the others: the report says so.
func Run(ctx context.Context, o Options) (Report, error) {
	r := Report{Machine: measure.ThisMachine(), Data: o.Data}
	if st, err := os.Stat(o.Data); err != nil || !st.IsDir() {
		return r, fmt.Errorf("%w at %s: PITCHPIPE_DATA names their folder, ../shared/data is asked otherwise", ErrData, o.Data)
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return r, err
	}
	all := sections(o.Own)
	for _, name := range o.Only {
		if !slices.ContainsFunc(all, func(s section) bool { return s.name == name }) {
			return r, fmt.Errorf("no evaluation %q", name)
		}
	}
	for _, s := range all {
		if len(o.Only) > 0 && !slices.Contains(o.Only, s.name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		x := o.evaluate(ctx, s)
		if x.err == nil {
			if err := o.plot(&x); err != nil {
				return r, err
			}
		}
		_, _ = fmt.Fprintf(o.Trace, "%-14s %6.1f s, %6.1f s of CPU time  %s\n", s.name, x.took.Seconds(), x.used.Seconds(), outcome(x))
		r.results = append(r.results, x)
	}
	r.Machine.LoadAfter = measure.Load()
	return r, o.write(r)
}

func outcome(x result) string {
	if x.err != nil {
		return "failed: " + x.err.Error()
	}
	met, all := 0, x.aimed()
	for _, a := range all {
		if a.met {
			met++
		}
	}
	return fmt.Sprintf("%d of %d aims met", met, len(all))
}

// evaluate runs one evaluation and keeps its JSON.
func (o Options) evaluate(ctx context.Context, s section) result {
	x := result{section: s}
	for _, f := range s.files {
		for _, p := range f.paths {
			if _, err := os.Stat(s.path(o.Data, p)); err != nil {
				x.err = fmt.Errorf("%w: %w", ErrData, err)
				return x
			}
		}
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, o.Program, s.command(o.Data)...) //nolint:gosec // the user named the program
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	err := cmd.Run()
	x.took = time.Since(began)
	if st := cmd.ProcessState; st != nil { // it began
		x.used = st.UserTime() + st.SystemTime()
	}
	if err != nil {
		x.err = fmt.Errorf("%w: %s", err, last(said.String()))
		return x
	}
	if err := os.WriteFile(filepath.Join(o.Out, s.name+".json"), out.Bytes(), 0o644); err != nil { //nolint:gosec // a report that others may read
		x.err = err
		return x
	}
	x.object, x.err = decode(&out)
	return x
}

// last is the last line of a text.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func (o Options) plot(x *result) error {
	if x.chart.rows == nil {
		return nil
	}
	for _, f := range x.chart.figures(x.name, x.object) {
		if err := f.draw(o.Out); err != nil {
			return err
		}
		x.figures = append(x.figures, f)
	}
	return nil
}

func (o Options) write(r Report) error {
	file, err := os.Create(filepath.Join(o.Out, "report.md")) //nolint:gosec // the user named the folder
	if err != nil {
		return err
	}
	return errors.Join(r.Write(file), file.Close())
}
