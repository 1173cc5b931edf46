! ranks: 1 2 3 4 7
! needs: fortran
! Files from Fortran, with mpif.h: open, views, all kinds of access, hints, error handlers.
! The handler is a module's procedure: one inside the program would need an executable stack.
module hearing
  implicit none
  integer :: heard = 0, last_error = 0
  integer :: last_file
contains
  subroutine hear(file, error)
    integer :: file
    integer :: error
    heard = heard + 1
    last_file = file
    last_error = error
  end subroutine
end module

program fortran_mpif
  use hearing
  implicit none
  include 'mpif.h'
  character(*), parameter :: name = 'fortran_mpif'
  include 'integer_handles.inc'
end program
