import{a as o,b as r}from"./chunk-XXACD5ND.js";import"./chunk-TYORAKUX.js";import"./chunk-LSPAFTS4.js";import"./chunk-4QBYZBRM.js";export{r as NotificationFields,o as Notifications};
