package nomad

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

type answers func(*http.Request) (status int, text string)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, text := f(r)
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

func TestWhatCannotBeReadOfAnAllocationThatIsOverIsGivenUp(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{http.StatusForbidden: driver.ErrDenied, http.StatusInternalServerError: driver.ErrTransient} {
		synctest.Test(t, func(t *testing.T) {
			client, err := api.NewClient(&api.Config{Address: "http://nomad", HttpClient: &http.Client{Transport: answers(func(*http.Request) (int, string) { return status, "no" })}})
			if err != nil {
				t.Fatal(err)
			}
			life, stop := context.WithTimeout(t.Context(), time.Hour)
			defer stop()
			runs, over := context.WithCancel(life)
			over()
			f := &follower{life: life, runs: runs, d: &Driver{c: cluster{api: client}}, follow: true}
			if _, err := f.Read(make([]byte, 1)); !errors.Is(err, want) {
				t.Errorf("%d: %v, want %v", status, err, want)
			}
		})
	}
}

func TestAProgressFileLiesInsideOfTheAllocation(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"": "", "local/p": "main/local/p", "${NOMAD_TASK_DIR}/p": "main/local/p", "${NOMAD_ALLOC_DIR}/data/p": "alloc/data/p",
		"p": "main/p", "local/../p": "main/p",
		"/etc/passwd": "no", "../x": "no", "local/../../x": "no", "${HOME}/x": "no", "$HOME/x": "no",
	} {
		got, err := inside(file, "main")
		if refused := want == "no"; refused != errors.Is(err, driver.ErrUnsupported) || !refused && got != want {
			t.Errorf("%q: %q (%v), want %q", file, got, err, want)
		}
	}
}
