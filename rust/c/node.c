// SPDX-License-Identifier: GPL-2.0
/*
 * The device node: a character device with a number of its own, see sys/file/chardev.rs. Not a
 * misc device, because those are all opened under one lock.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/module.h>

#include "helpers.h"

/* The mode of the node is the driver data of its device. */
static char *dxg_node_mode(const struct device *dev, umode_t *mode)
{
	if (mode)
		*mode = (uintptr_t)dev_get_drvdata(dev);
	return NULL;
}

static const struct class dxg_node_class = {
	.name = "opendxg",
	.devnode = dxg_node_mode,
};

/* Makes /dev/NAME, once. It can be opened from now on; each open file keeps the owner of fops. */
struct cdev *dxg_node_add(const char *name, umode_t mode, const struct file_operations *fops)
{
	struct device *device;
	struct cdev *cdev;
	dev_t number;
	int ret;

	ret = class_register(&dxg_node_class);
	if (ret)
		return ERR_PTR(ret);
	ret = alloc_chrdev_region(&number, 0, 1, "opendxg");
	if (ret)
		goto unregister_class;

	ret = -ENOMEM;
	cdev = cdev_alloc();
	if (!cdev)
		goto unregister_region;
	cdev->owner = fops->owner;
	cdev->ops = fops;
	ret = cdev_add(cdev, number, 1);
	if (ret) {
		kobject_put(&cdev->kobj);
		goto unregister_region;
	}

	device = device_create(&dxg_node_class, NULL, number, (void *)(uintptr_t)mode, "%s", name);
	if (!IS_ERR(device))
		return cdev;

	ret = PTR_ERR(device);
	cdev_del(cdev);
unregister_region:
	unregister_chrdev_region(number, 1);
unregister_class:
	class_unregister(&dxg_node_class);
	return ERR_PTR(ret);
}

/* Removes it. No file of it is open or being opened, because that keeps the owner. */
void dxg_node_remove(struct cdev *cdev)
{
	dev_t number = cdev->dev;

	device_destroy(&dxg_node_class, number);
	cdev_del(cdev);
	unregister_chrdev_region(number, 1);
	class_unregister(&dxg_node_class);
}
