package nomad

import (
	"errors"
	"testing"

	"pitchpipe/driver"
)

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
