package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"pitchpipe/controller/joblog"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/simulate"
	"pitchpipe/controller/simulate/figure"
)

func TestPicturesNameWhatTheyShow(t *testing.T) {
	t.Parallel()
	var results []simulate.Result
	for _, s := range simulate.Specs() {
		if s.Name != "fifo" && s.Name != "srtf" {
			continue
		}
		in, err := simulate.Prepare(joblog.Log{Jobs: []joblog.Job{{ID: "a", Duration: 9e5, CPUs: 2}, {ID: "b", Submit: 5, Duration: 10, CPUs: 2}}}, simulate.Shape{Nodes: 2, CoresPerNode: 1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(t.Context(), in, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	waits, many := figure.Waits(), figure.Completions()
	for range 5 { // more curves than there are colours
		for _, r := range results {
			waits.Add(r)
			many.Add(r)
		}
	}
	for name, c := range map[string]struct {
		sheet picture.Sheet
		texts []string
	}{
		"waits":       {waits.Sheet(), []string{"Time in the queue", "share of jobs", "10 days", "fifo", "srtf"}},
		"completions": {many.Sheet(), []string{"Time from submission to end", "1 min", "fifo", "srtf"}},
		"timeline":    {figure.Timeline(results[1]), []string{"Jobs under srtf", "days since the first submission", "jobs", "run", "wait"}},
	} {
		var b bytes.Buffer
		if err := c.sheet.Write(&b, picture.SVG); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for _, want := range c.texts {
			if !strings.Contains(text, ">"+want+"</text>") {
				t.Errorf("%s lacks %q", name, want)
			}
		}
		if lines := strings.Count(text, "<path d=\"M"); lines < 3 || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: %d lines", name, lines)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}
