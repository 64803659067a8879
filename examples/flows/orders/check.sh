#!/bin/sh
# Checks an order such as "3 apples": 0 it is good, 3 it lacks a number, anything else and the check itself broke.
read -r number what || [ -n "$number" ] || exit 9
echo "$number $what"
case $number in
    *[!0-9]*) exit 3 ;;
esac
