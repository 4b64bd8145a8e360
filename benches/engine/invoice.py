"""Invoices: what a customer has to pay."""

from dataclasses import dataclass, field
from decimal import Decimal


@dataclass
class Line:
    """One line of an invoice."""

    name: str
    price: Decimal
    count: int = 1

    def total(self):
        return self.price * self.count


@dataclass
class Invoice:
    """The lines of one customer."""

    customer: str
    lines: list = field(default_factory=list)

    def add(self, name, price, count=1):
        if count < 1:
            raise ValueError("the count must be at least one")
        self.lines.append(Line(name, Decimal(price), count))

    def subtotal(self):
        return sum((line.total() for line in self.lines), Decimal(0))

    def discount(self):
        """Ten percent for everything above a hundred."""
        if self.subtotal() > 100:
            return self.subtotal() * Decimal("0.10")
        return Decimal(0)

    def total(self):
        return self.subtotal() - self.discount()


def report(invoice):
    print(f"Invoice for {invoice.customer}")
    for line in invoice.lines:
        print(f"{line.count:>4} x {line.name:<20} {line.total():>10}")
    print(f"Subtotal: {invoice.subtotal():>10}")
    print(f"Discount: {invoice.discount():>10}")
    print(f"Total:    {invoice.total():>10}")


if __name__ == "__main__":
    invoice = Invoice("Ada")
    invoice.add("notebook", "12.50", 10)
    invoice.add("pencil", "0.80", 25)
    report(invoice)
