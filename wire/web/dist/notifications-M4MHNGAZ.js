import{a as o,b as r}from"./chunk-TCMGWYXU.js";import"./chunk-5ZEWBVW7.js";import"./chunk-RTQTAYYL.js";import"./chunk-YVE65IM7.js";export{r as NotificationFields,o as Notifications};
