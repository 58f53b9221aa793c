package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

const (
	bucketOffers = "offers"
	// keepOffers is how long an offer is remembered whose job was not seen, as while no
	// controller runs.
	keepOffers = 24 * time.Hour
	// mostOffers bounds those for jobs of one owner: who only asks keeps no one else from it.
	mostOffers = 1000
)

// foreseer is a driver whose scheduler starts jobs at once, so that they can only be
// changed before they are submitted. See driver/nomad.
type foreseer interface {
	// Foresee is the job that the submission would make; nothing is done.
	Foresee(job []byte) (driver.Job, error)
	// MayBegin is the dry run of the submission with a change.
	MayBegin(ctx context.Context, job []byte, c driver.Change) error
}

// headStart says with what a job of the caller is to be submitted that he is about to
// submit himself. There is nothing for him in an error: his job begins as it is.
func (r request) headStart() (any, error) {
	f, ok := r.d.driver.(foreseer)
	if !ok {
		return api.HeadStart{}, nil // its scheduler makes it wait
	}
	source, err := io.ReadAll(io.LimitReader(r.Body, maxFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	job, err := f.Foresee(source)
	switch {
	case errors.Is(err, driver.ErrUnsupported):
		return api.HeadStart{}, nil
	case err != nil:
		return nil, err
	case !r.who.May(job.Owner):
		return nil, errDenied
	case job.Off:
		return api.HeadStart{}, nil
	}
	o, err := r.d.loop.Offer(r.Context(), string(job.ID)+"/"+newRequestID(), job, func(ctx context.Context, c driver.Change) error {
		return f.MayBegin(ctx, source, c)
	})
	if errors.Is(err, reconcile.ErrNoOffer) {
		r.d.log.Debug("a job begins as it is", "job", job.ID, "why", err)
		return api.HeadStart{}, nil
	}
	if err != nil {
		return nil, err
	}
	return api.HeadStart{
		Intent: o.ID, Change: o.Change, Settings: o.Decision.Settings, Reason: o.Decision.Reason, Sentence: o.Decision.Reason.Sentence(),
	}, nil
}

type offers struct{ store *knowledge.Store }

var _ reconcile.Offers = offers{}

// Put implements reconcile.Offers. Old ones are forgotten.
func (s offers) Put(_ context.Context, o reconcile.Offer) error {
	var old []string
	n := 0
	err := s.store.ForEachJSON(bucketOffers, func(key string, decode func(v any) error) error {
		var x struct {
			At   time.Time
			Kind tuning.JobKind
		}
		if err := decode(&x); err != nil || o.At.Sub(x.At) > keepOffers {
			old = append(old, key) //nolint:nilerr // what cannot be read is of no use
			return nil
		}
		if x.Kind.Owner == o.Kind.Owner {
			n++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n >= mostOffers {
		return fmt.Errorf("%w: %d are not taken yet", reconcile.ErrNoOffer, n)
	}
	return s.store.Update(func(tx *knowledge.Tx) error {
		for _, key := range old {
			if err := tx.Delete(bucketOffers, key); err != nil {
				return err
			}
		}
		return tx.PutJSON(bucketOffers, o.ID, o)
	})
}

// Get implements reconcile.Offers.
func (s offers) Get(_ context.Context, id string) (reconcile.Offer, error) {
	var o reconcile.Offer
	err := s.store.GetJSON(bucketOffers, id, &o)
	if errors.Is(err, knowledge.ErrNotFound) || errors.Is(err, knowledge.ErrDamaged) {
		err = reconcile.ErrNoOffer
	}
	return o, err
}

// Delete implements reconcile.Offers.
func (s offers) Delete(_ context.Context, id string) error { return s.store.Delete(bucketOffers, id) }
