"""Who is in the class, from a CSV file as nbgrader imports it, or as an LMS exports it."""

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from unicodedata import normalize

from autograder.errors import CourseError

ROSTER = "roster.csv"
SHOWN = 60  # characters of a text that is told
LONGEST_NAME = 255  # bytes of a file's or folder's name
# What a column may be called, in small letters; nbgrader's own name comes first.
COLUMNS = {
    "id": ("id", "student id", "student_id", "sis user id", "id number", "sid", "username"),
    "first_name": ("first_name", "first name", "firstname"),
    "last_name": ("last_name", "last name", "surname", "lastname"),
    "email": ("email", "email address", "e-mail"),
    "lms_user_id": ("lms_user_id", "lms id", "user id", "userid"),
    "username": ("username", "sis login id", "login", "user name", "login id"),
    "name": ("name", "full name", "student"),
}


@dataclass(frozen=True)
class Student:
    """One row of the roster."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    lms_user_id: str = ""
    username: str = ""
    name: str = ""

    @property
    def full_name(self) -> str:
        """Return first and last name, or the one name that the roster has."""
        return " ".join(filter(None, (self.first_name, self.last_name))) or self.name


@dataclass
class Roster:
    """A class: students by id, and whom a word of an archive's file name can mean."""

    students: dict[str, Student] = field(default_factory=dict)

    def whom(self, *words: str, number: str = "") -> list[Student]:
        """Return the students that all fitting words name: by id, LMS id, user name, email, or name.

        Several mean that the words do not decide, or point at different students; nobody is guessed.

        Args:
            words: What an archive calls the student.
            number: The student's number in the LMS.
        """
        told = [found for word in words if (found := self.called(word))]
        of_lms = [student for student in self.students.values() if number and student.lms_user_id == number]
        if (
            not of_lms and told
        ):  # an id that equals the number may be chance: beside a name it counts, alone it does not
            of_lms = [student for student in self.students.values() if number and student.id == number]
        told += [of_lms] if of_lms else []
        named = {student.id: student for found in told for student in found}
        agreed = [student for student in named.values() if all(student in found for found in told)]
        return agreed or list(named.values())

    def called(self, word: str) -> list[Student]:
        """Return the students whom a word names, by the surest of its readings that names somebody."""
        for key, read in ((identities, folded), (names, folded), (squeezed_names, squeezed)):
            found = [student for student in self.students.values() if word and read(word) in key(student)]
            if found:
                return found
        return []


def identities(student: Student) -> set[str]:
    """Return what names one student alone."""
    own = (student.id, student.lms_user_id, student.username, student.email, student.email.partition("@")[0])
    return {folded(word) for word in own if word}


def names(student: Student) -> set[str]:
    """Return a student's name as LMSs write it: Jane Doe, Doe Jane, or Doe, Jane."""
    first, last = student.first_name, student.last_name
    forms = {student.full_name, f"{last} {first}", f"{last}, {first}"} if first or last else {student.full_name}
    return {folded(form) for form in forms if form}


def squeezed_names(student: Student) -> set[str]:
    """Return a student's name with its letters run together, doejane."""
    return {squeezed(form) for form in names(student)} - {""}


def folded(word: str) -> str:
    """Return a word for comparison: small letters, single spaces."""
    return " ".join(word.casefold().split())


def squeezed(word: str) -> str:
    """Return a word with letters and digits alone, and without accents, as Canvas puts names into file names."""
    return "".join(letter for letter in normalize("NFKD", word.casefold()) if letter.isalnum())


def names_a_folder(word: str) -> bool:
    """Return whether a word can be an id, which names a folder."""
    fits = len(word.encode("utf-8", "surrogatepass")) <= LONGEST_NAME
    return (
        fits and bool(word.strip()) and word.isprintable() and not word.startswith(".") and not set("/\\") & set(word)
    )


def read_roster(path: Path) -> Roster:
    """Read a roster; a byte-order mark and semicolons are no trouble.

    Raises:
        CourseError: there is no such file, it is no CSV text, it has no column for the id, or an id stands there twice.
    """
    if not path.is_file():
        raise CourseError(
            f"There is no roster {path}; it is a CSV file with the columns id, first_name, last_name, email."
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CourseError(f"{path} is not UTF-8; save the roster as CSV UTF-8.") from error
    reader = csv.reader(io.StringIO(text), delimiter=delimiter(text), strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise CourseError(
            f"{path} is no CSV file that can be read: {error}, before line {reader.line_num + 1}."
        ) from error
    header = [folded(word) for word in rows[0]] if rows else []
    places = {field: place for field, known in COLUMNS.items() if (place := first_place(header, known)) is not None}
    if "sis user id" in header and "id" in header:  # a gradebook of Canvas, whose ID is its own number
        places["lms_user_id"] = header.index("id")
    if "id" not in places:
        raise CourseError(f"{path} has no column `id`; its columns are: {', '.join(header) or 'none'}.")
    roster = Roster()
    for number, row in enumerate(rows[1:], start=2):
        values = {field: row[place].strip() for field, place in places.items() if place < len(row)}
        if not values.get("id"):
            continue
        student = Student(**values)
        if not names_a_folder(student.id):
            raise CourseError(f"{path}, line {number}: the id {student.id[:SHOWN]!r} cannot name a folder.")
        twin = next((one for one in roster.students if one.casefold() == student.id.casefold()), None)
        if twin is not None:
            raise CourseError(f"{path}, line {number}: the id {student.id!r} stands there twice; ids must differ.")
        roster.students[student.id] = student
    if not roster.students:
        raise CourseError(f"{path} names no student below its header.")
    return roster


def first_place(header: list[str], known: tuple[str, ...]) -> int | None:
    """Return where the first of some names stands in the header."""
    return next((header.index(name) for name in known if name in header), None)


def delimiter(text: str) -> str:
    """Return what separates the columns: comma, semicolon or tab, whichever the header has most of."""
    header = text.partition("\n")[0]
    return max(",;\t", key=header.count)
