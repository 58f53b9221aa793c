package scenario

import (
	"net/http"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// replays: every decision is kept with what it was made of, and made again from the
// record it is the very same.
func (p *play) replays(t told) {
	p.Helper()
	for _, x := range t.rec.Replay(plan.Decide) {
		switch {
		case x.Err != nil:
			p.Errorf("job %s: the decision of %s (%s) cannot be made again: %v", t.name, x.At, x.Reason, x.Err)
		case !x.Same:
			p.Errorf("job %s: at %s it was decided to %s because %s, and again %s because %s: %+v",
				t.name, x.At, x.Action, x.Reason, x.Again.Action, x.Again.Reason, x.Again)
		}
	}
	kept := map[tuning.Reason]bool{}
	for _, x := range t.rec.Decided {
		kept[x.Reason] = true
	}
	for _, e := range t.rec.History {
		if d := e.Decision; d != nil && t.rec.Dropped == nil && !kept[d.Reason] {
			p.Errorf("job %s: the decision to %s because %s has no state", t.name, d.Action, d.Reason)
		}
	}
}

// retold asks the controller itself to decide again.
func (p *play) retold(name string) api.Story {
	p.Helper()
	var s api.Story
	if code := p.ask(p.users[name], http.MethodGet, "/v1/explain/"+string(p.id(name))+"?replay=true", nil, &s); code != http.StatusOK {
		p.Errorf("replay %s: status %d", name, code)
	}
	for _, r := range s.Replays {
		if !r.Same || r.State == nil || r.Again == nil {
			p.Errorf("job %s: %s", name, r.Text)
		}
	}
	return s
}
