package command

import (
	"fmt"
	"strings"

	"pitchpipe/controller/daemon/api"
)

// screen draws one line per job: in place on a terminal, else a plain line
// whenever a job's phase or epoch changed.
type screen struct {
	app   *app
	lines int
	last  map[string]string
}

func (a *app) screen() *screen { return &screen{app: a, last: map[string]string{}} }

func (p *screen) update(jobs []api.Job) {
	width, live := p.app.terminal()
	if !live {
		for _, j := range jobs {
			mark := fmt.Sprintf("%s %s %d", j.State, j.Phase, tenths(j))
			if p.last[j.ID] == mark {
				continue
			}
			p.last[j.ID] = mark
			p.app.printf("%s\n", summary(j))
		}
		return
	}
	if p.lines > 0 {
		p.app.printf("\x1b[%dA", p.lines)
	}
	for _, j := range jobs {
		p.app.printf("\r\x1b[2K%s\n", p.line(j, width))
	}
	p.lines = len(jobs)
}

// tenths is how much of a job is done, in steps of a tenth: as much as a log wants.
func tenths(j api.Job) int {
	if j.Total <= 0 {
		return j.Epoch
	}
	return 10 * j.Epoch / j.Total
}

func (p *screen) close() { p.lines = 0 }

func (p *screen) line(j api.Job, width int) string {
	text := summary(j)
	letters := []rune(text)
	bar := min(24, width-len(letters)-3)
	if j.Total <= 0 || bar < 6 {
		return string(letters[:min(len(letters), max(0, width-1))])
	}
	full := bar * min(j.Epoch, j.Total) / j.Total
	return p.app.colour("32", strings.Repeat("█", full)) + strings.Repeat("░", bar-full) + " " + text
}

func summary(j api.Job) string {
	epochs := fmt.Sprintf("epoch %d", j.Epoch)
	if j.Total > 0 {
		epochs += fmt.Sprintf("/%d", j.Total)
	}
	return fmt.Sprintf("%s %s  %s  %s  %.1f s  %s  %s", j.ID, j.Name, epochs, phase(j), j.Seconds, joules(j.Joules, j.Source), j.Current)
}

func phase(j api.Job) string {
	if j.Phase == "seen" || j.Phase == "ended" {
		return j.State
	}
	return j.State + ", " + j.Phase
}

// joules prints energy with its source; missing is not zero.
func joules(v *float64, source string) string {
	if v == nil {
		return "– J"
	}
	return fmt.Sprintf("%.0f J (%s)", *v, source)
}

// next leaves the line of a job that ended where it is and goes on below it.
func (p *screen) next(j api.Job) {
	if j.Ended {
		p.lines = 0
	}
}
