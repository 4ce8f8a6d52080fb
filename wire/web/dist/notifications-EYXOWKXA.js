import{a as o,b as r}from"./chunk-5E4OSRN5.js";import"./chunk-4C3QJI5B.js";import"./chunk-YYCZNCAK.js";export{r as NotificationFields,o as Notifications};
