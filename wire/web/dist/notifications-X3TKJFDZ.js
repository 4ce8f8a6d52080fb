import{a as o,b as r}from"./chunk-6S64OKE6.js";import"./chunk-3UXG4FD3.js";import"./chunk-G3MNZREZ.js";export{r as NotificationFields,o as Notifications};
