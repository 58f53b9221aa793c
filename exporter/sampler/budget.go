package sampler

import (
	"cmp"
	"maps"
	"slices"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
)

// budget looks what the administrator lets jobs use. What cannot be read keeps what
// was read before: a file that is being written must not lift a limit.
func (s *Sampler) budget(jobs ...*job) {
	if s.cfg.Budgets == nil {
		return
	}
	type answer struct {
		of     attrib.Key
		budget api.Budget
		err    error
	}
	all := make([]answer, len(jobs))
	for i, j := range jobs {
		all[i].of = j.stored
	}
	silent := s.worker("budget").Each(len(all), func(i int) {
		a := &all[i]
		a.budget, _, a.err = s.cfg.Budgets.Budget(a.of.Manager, a.of.ID)
	})
	for i, j := range jobs {
		b, err := api.Budget{}, silent
		if silent == nil {
			b, err = all[i].budget, all[i].err
		}
		if err != nil {
			s.stats.ReadErrors++
		} else {
			s.store.Allow(j.stored, api.ByAdministrator, b)
		}
		j.budgetFault.set(err)
		j.budgetFault.log(s.log, "the budget of "+j.stored.String()+", which is not believed")
	}
}

// UserJoules is what the jobs of one user were charged with since the exporter began.
type UserJoules struct {
	UID    uint32
	Joules energy.Joules
}

// maxUsers is of how many users the joules are counted: a node that as many work on
// forgets those first that have no job and took least.
const maxUsers = 256

// bill adds to what a user's jobs took.
func (l *ledger) bill(uid uint32, j energy.Joules) {
	if l.users == nil {
		l.users = map[uint32]energy.Joules{}
	}
	l.users[uid] = l.users[uid].Plus(j)
}

// userJoules lists the users by their numbers.
func (s *Sampler) userJoules() []UserJoules {
	busy := map[uint32]int{}
	for _, j := range s.jobs {
		busy[j.uid] = 1
	}
	all := slices.SortedFunc(maps.Keys(s.ledger.users), func(a, b uint32) int {
		return cmp.Or(busy[b]-busy[a], cmp.Compare(s.ledger.users[b].Total(), s.ledger.users[a].Total()))
	})
	for _, uid := range all[min(len(all), maxUsers):] {
		delete(s.ledger.users, uid)
	}
	out := make([]UserJoules, 0, len(s.ledger.users))
	for _, uid := range slices.Sorted(maps.Keys(s.ledger.users)) {
		out = append(out, UserJoules{uid, s.ledger.users[uid]})
	}
	return out
}
