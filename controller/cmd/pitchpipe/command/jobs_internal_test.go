package command

import (
	"testing"

	"pitchpipe/controller/daemon/api"
)

func TestAListIsDrawnOverTheOneBefore(t *testing.T) {
	t.Parallel()
	p := (&app{}).screen()
	jobs := []api.Job{{ID: "1", Ended: true}, {ID: "2", Ended: true}, {ID: "3", Ended: true}}
	for _, c := range []struct {
		jobs   []api.Job
		height int
		want   string
	}{
		{jobs, 4, "1   epoch 0  ,   0 ms\n2   epoch 0  ,   0 ms\n3   epoch 0  ,   0 ms\n"},
		{jobs[1:2], 4, "\x1b[3A\r\x1b[J2   epoch 0  ,   0 ms\n"},
		{jobs, 3, "\x1b[1A\r\x1b[Jand 2 older\n3   epoch 0  ,   0 ms\n"},
		{nil, 3, "\x1b[2A\r\x1b[J"},
	} {
		if got := p.picture(c.jobs, 80, c.height); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
