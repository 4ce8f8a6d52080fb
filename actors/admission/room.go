package admission

import "time"

// Account is the account that a waiting item belongs to.
type Account[K comparable] struct {
	User K
	Bot  bool
}

// Room holds items that wait, in two lines: people first, then bots. In each line the accounts take turns, so an
// account with many items does not delay the others. K identifies an account. The zero value is not valid; use NewRoom.
type Room[K comparable, T any] struct {
	max, maxAccount int
	count           int
	people, bots    line[K, T]
}

// line is the accounts of one kind that wait.
type line[K comparable, T any] struct {
	byUser map[K]*waiter[K, T]
	turns  []*waiter[K, T] // the first one is next
}

// waiter is one account's items, oldest first. It has at least one.
type waiter[K comparable, T any] struct {
	user  K
	items []waitingItem[T]
}

type waitingItem[T any] struct {
	value T
	since time.Duration
}

// NewRoom returns an empty room for at most max items, and maxAccount of one account.
func NewRoom[K comparable, T any](max, maxAccount int) *Room[K, T] {
	return &Room[K, T]{max: max, maxAccount: maxAccount, people: line[K, T]{byUser: map[K]*waiter[K, T]{}},
		bots: line[K, T]{byUser: map[K]*waiter[K, T]{}}}
}

// Len returns the number of items.
func (r *Room[K, T]) Len() int { return r.count }

// Add adds an item, or refuses one for which there is no room: this one if its account has maxAccount, else the newest
// one of the account with the most items. Bots lose theirs before people.
func (r *Room[K, T]) Add(a Account[K], value T, now time.Duration) (refused T, full bool) {
	l := r.lineOf(a)
	w := l.byUser[a.User]
	if w != nil && len(w.items) >= r.maxAccount {
		return value, true
	}
	if r.count >= r.max {
		from := r.mostItems(a)
		if from == nil {
			return value, true
		}
		refused, full = from.dropNewest(), true
		r.count--
		w = l.byUser[a.User] // it may have lost its only item
	}
	if w == nil {
		w = &waiter[K, T]{user: a.User}
		l.byUser[a.User] = w
		l.turns = append(l.turns, w)
	}
	w.items = append(w.items, waitingItem[T]{value, now})
	r.count++
	return refused, full
}

func (r *Room[K, T]) lineOf(a Account[K]) *line[K, T] {
	if a.Bot {
		return &r.bots
	}
	return &r.people
}

// holder is an account of a line.
type holder[K comparable, T any] struct {
	l *line[K, T]
	w *waiter[K, T]
}

// mostItems returns the account that must give up an item for one of a: a bot with the most items if there is one and a
// is a person, else the account of a's line with the most, if that would still have as many as a. It returns nil if a's
// own item must be refused.
func (r *Room[K, T]) mostItems(a Account[K]) *holder[K, T] {
	l, least := r.lineOf(a), 2
	if !a.Bot && len(r.bots.turns) > 0 {
		l, least = &r.bots, 1
	} else if w := l.byUser[a.User]; w != nil {
		least += len(w.items)
	}
	var most *waiter[K, T]
	for _, w := range l.turns {
		if len(w.items) >= least && (most == nil || len(w.items) > len(most.items)) {
			most = w
		}
	}
	if most == nil {
		return nil
	}
	return &holder[K, T]{l, most}
}

// dropNewest removes the newest item.
func (h *holder[K, T]) dropNewest() T {
	last := len(h.w.items) - 1
	value := h.w.items[last].value
	h.w.items = h.w.items[:last]
	if last == 0 {
		h.l.remove(h.w)
	}
	return value
}

// remove removes an account without items.
func (l *line[K, T]) remove(w *waiter[K, T]) {
	delete(l.byUser, w.user)
	for i, x := range l.turns {
		if x == w {
			l.turns = append(l.turns[:i], l.turns[i+1:]...)
			return
		}
	}
}

// Next removes and returns the item that is next, and how long it has waited.
func (r *Room[K, T]) Next(now time.Duration) (value T, waited time.Duration, ok bool) {
	l := &r.people
	if len(l.turns) == 0 {
		l = &r.bots
	}
	if len(l.turns) == 0 {
		return value, 0, false
	}
	w := l.turns[0]
	item := w.items[0]
	w.items[0] = waitingItem[T]{}
	l.turns[0] = nil
	l.turns = l.turns[1:]
	if w.items = w.items[1:]; len(w.items) > 0 {
		l.turns = append(l.turns, w)
	} else {
		delete(l.byUser, w.user)
	}
	r.count--
	return item.value, now - item.since, true
}

// Expire removes and returns the items that have waited since before a time.
func (r *Room[K, T]) Expire(before time.Duration) (expired []T) {
	for _, l := range []*line[K, T]{&r.people, &r.bots} {
		kept := l.turns[:0]
		for _, w := range l.turns {
			n := 0
			for n < len(w.items) && w.items[n].since < before {
				expired = append(expired, w.items[n].value)
				n++
			}
			if w.items = w.items[n:]; len(w.items) > 0 {
				kept = append(kept, w)
			} else {
				delete(l.byUser, w.user)
			}
			r.count -= n
		}
		clear(l.turns[len(kept):])
		l.turns = kept
	}
	return expired
}
