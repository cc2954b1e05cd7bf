# Customers whose late order lacks a part that is out of stock get 10 % off the next order.
set -eo pipefail

# all late orders, page by page
page=0
until [ "$page" = "$pages" ]; do
    page=$((page + 1))
    shop.list_orders --status late --page "$page" > page.json
    pages=$(jq .pages page.json)
    jq -c '.orders[]' page.json
done > late.jsonl

# which of their parts are out of stock: eight questions at a time
jq -r '.items[].sku' late.jsonl | sort -u |
    xargs -P 8 -n 1 shop.get_inventory |
    jq -r 'select(.available == 0) | .sku' > missing.txt

# who waits for which of them
missing=$(jq -R . missing.txt | jq -sc .)
jq -r --argjson missing "$missing" '
    .user_id as $user | .items[] | select(.sku | IN($missing[])) | "\($user) \(.part)"
' late.jsonl | sort -u > waiting.txt

cut -d ' ' -f 1 waiting.txt | sort -nu | while read -r user; do
    parts=$(grep "^$user " waiting.txt | cut -d ' ' -f 2- | paste -sd ';' -)
    code=$(shop.create_discount "$user" 10 "You wait for $parts." | jq -r .code)
    shop.get_user "$user" | jq -r --arg code "$code" --arg parts "$parts" '"\(.email)  \($code)  \($parts)"'
done
