package admission

import "time"

// Account is the account that a waiting item belongs to.
type Account[K comparable] struct {
	User K
	Bot  bool
}

// WaitQueue holds waiting items in two classes of priority: people first, then bots. The accounts of a class are served
// round-robin, so an account with many items does not delay the others. K identifies an account. The zero value is not
// valid; use NewWaitQueue.
type WaitQueue[K comparable, T any] struct {
	max, maxAccount int
	count           int
	people, bots    class[K, T] // people have priority
}

// class holds the waiting accounts of one class of priority.
type class[K comparable, T any] struct {
	byUser map[K]*waiter[K, T]
	order  []*waiter[K, T] // round-robin: the first one is next
}

// waiter is one account with its items, oldest first. It has at least one item.
type waiter[K comparable, T any] struct {
	user  K
	items []waitingItem[T]
}

type waitingItem[T any] struct {
	value T
	since time.Duration
}

// NewWaitQueue returns an empty queue for at most max items in all, and at most maxAccount items of one account.
func NewWaitQueue[K comparable, T any](max, maxAccount int) *WaitQueue[K, T] {
	return &WaitQueue[K, T]{max: max, maxAccount: maxAccount, people: class[K, T]{byUser: map[K]*waiter[K, T]{}},
		bots: class[K, T]{byUser: map[K]*waiter[K, T]{}}}
}

// Len returns the number of items.
func (q *WaitQueue[K, T]) Len() int { return q.count }

// Add adds an item. If the queue is full, it refuses an item and returns it: the new item if its account already has
// maxAccount items, else the newest item of the account with the most items. Bots' items are refused before those of
// people.
func (q *WaitQueue[K, T]) Add(a Account[K], value T, now time.Duration) (refused T, full bool) {
	l := q.classOf(a)
	w := l.byUser[a.User]
	if w != nil && len(w.items) >= q.maxAccount {
		return value, true
	}
	if q.count >= q.max {
		from := q.chooseVictim(a)
		if from == nil {
			return value, true
		}
		refused, full = from.dropNewest(), true
		q.count--
		w = l.byUser[a.User] // this account may have lost its only item
	}
	if w == nil {
		w = &waiter[K, T]{user: a.User}
		l.byUser[a.User] = w
		l.order = append(l.order, w)
	}
	w.items = append(w.items, waitingItem[T]{value, now})
	q.count++
	return refused, full
}

func (q *WaitQueue[K, T]) classOf(a Account[K]) *class[K, T] {
	if a.Bot {
		return &q.bots
	}
	return &q.people
}

// victim is the account whose newest item is refused.
type victim[K comparable, T any] struct {
	class  *class[K, T]
	waiter *waiter[K, T]
}

// chooseVictim returns the account that loses an item so that an item of a can be added. If a is a person and bots
// wait, it is the bot with the most items; else the account of a's class with the most items, if it still has at least
// as many as a afterwards. It returns nil if the new item of a must be refused.
func (q *WaitQueue[K, T]) chooseVictim(a Account[K]) *victim[K, T] {
	l, least := q.classOf(a), 2
	if !a.Bot && len(q.bots.order) > 0 {
		l, least = &q.bots, 1
	} else if w := l.byUser[a.User]; w != nil {
		least += len(w.items)
	}
	var most *waiter[K, T]
	for _, w := range l.order {
		if len(w.items) >= least && (most == nil || len(w.items) > len(most.items)) {
			most = w
		}
	}
	if most == nil {
		return nil
	}
	return &victim[K, T]{l, most}
}

// dropNewest removes the newest item.
func (v *victim[K, T]) dropNewest() T {
	last := len(v.waiter.items) - 1
	value := v.waiter.items[last].value
	v.waiter.items = v.waiter.items[:last]
	if last == 0 {
		v.class.remove(v.waiter)
	}
	return value
}

// remove removes an account without items.
func (l *class[K, T]) remove(w *waiter[K, T]) {
	delete(l.byUser, w.user)
	for i, x := range l.order {
		if x == w {
			l.order = append(l.order[:i], l.order[i+1:]...)
			return
		}
	}
}

// Next removes and returns the item that is next, and how long it has waited.
func (q *WaitQueue[K, T]) Next(now time.Duration) (value T, waited time.Duration, ok bool) {
	l := &q.people
	if len(l.order) == 0 {
		l = &q.bots
	}
	if len(l.order) == 0 {
		return value, 0, false
	}
	w := l.order[0]
	item := w.items[0]
	w.items[0] = waitingItem[T]{}
	l.order[0] = nil
	l.order = l.order[1:]
	if w.items = w.items[1:]; len(w.items) > 0 {
		l.order = append(l.order, w)
	} else {
		delete(l.byUser, w.user)
	}
	q.count--
	return item.value, now - item.since, true
}

// Expire removes and returns the items that have waited since before a time.
func (q *WaitQueue[K, T]) Expire(before time.Duration) (expired []T) {
	for _, l := range []*class[K, T]{&q.people, &q.bots} {
		remaining := l.order[:0]
		for _, w := range l.order {
			n := 0
			for n < len(w.items) && w.items[n].since < before {
				expired = append(expired, w.items[n].value)
				n++
			}
			if w.items = w.items[n:]; len(w.items) > 0 {
				remaining = append(remaining, w)
			} else {
				delete(l.byUser, w.user)
			}
			q.count -= n
		}
		clear(l.order[len(remaining):])
		l.order = remaining
	}
	return expired
}
