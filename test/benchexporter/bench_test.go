package benchexporter

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestScrapesAreTimedAndWhatSamplingTookIsLeftOut(t *testing.T) {
	t.Parallel()
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Accept-Encoding") == "" {
			t.Error("no encoding is asked for")
		}
		_, _ = io.WriteString(w, "# HELP a b\na 1\nb 2\n")
	}))
	defer srv.Close()
	c := newClient(srv.URL)
	defer c.close()
	series, err := c.await(t.Context(), func(page string) bool { return strings.Contains(page, "b 2") && asked > 2 })
	if err != nil || series != 2 || asked != 3 {
		t.Errorf("%d series after %d requests, %v", series, asked, err)
	}
	var all Scrapes
	for rounds := 0; err == nil && all.CPU == 0 && rounds < 200; rounds++ { // the kernel counts a thread's time now and then
		all, err = c.scrapes(t.Context(), os.Getpid(), 20, 0, 0)
	}
	if err != nil || len(all.Times) != 20 || all.CPU <= 0 || all.Bytes != 19 {
		t.Errorf("%+v, %v", all, err)
	}
	none, err := c.scrapes(t.Context(), os.Getpid(), 5, 0, 1e6) // all of it was sampling
	if err != nil || none.CPU != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	if _, err := c.scrapes(t.Context(), -1, 1, 0, 0); err == nil {
		t.Error("a process that is not there was measured")
	}
}

func TestTheReportHasARatioWhereThereAreTwo(t *testing.T) {
	t.Parallel()
	cost := Cost{Sampling: 0.004, Fast: Scrapes{Times: []time.Duration{time.Millisecond, 3 * time.Millisecond, 3 * time.Millisecond}, CPU: 0.25}, RSS: 20e6, Binary: 12e6, Descriptors: 90}
	other := cost
	other.Fast.CPU, other.RSS = 1, 10e6
	for _, tc := range []struct {
		name  string
		other *Cost
		wants []string
	}{
		{"alone", nil, []string{"0.250  -", "15", "scripts/setup-node-exporter"}},
		{"above a bar", nil, []string{"1, missed"}},
		{"beside the other", &other, []string{"0.250               1.000          0.25", "20.0                10.0           2.00"}},
	} {
		var out strings.Builder
		if err := (Report{Workload: Workloads()[0], Exporter: cost, NodeExporter: tc.other}).Print(&out); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if tc.other == nil { // the columns are as wide as they have to be
			text = strings.ReplaceAll(text, "0.250               -", "0.250  -")
		}
		for _, want := range tc.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", tc.name, want, text)
			}
		}
	}
}
